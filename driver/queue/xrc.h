/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Extended reliable connected transport (XRC): IBTA annex A14.
 *
 * To the driver, an XRC target is an RC queue pair without a receive ring, completion queues and
 * protection domain. Each request names an XRC SRQ of the target's XRC domain, and the target has
 * those of the SRQ while it executes the request. An XRC initiator is an RC queue pair that only
 * sends.
 */
#ifndef VRNIC_XRC_H
#define VRNIC_XRC_H

#include <linux/types.h>

struct ib_xrcd;
struct vrnic_hold;
struct vrnic_qp;
struct vrnic_srq;

int vrnic_xsrqs_init(void);
void vrnic_xsrqs_exit(void);
int vrnic_xsrq_publish(struct vrnic_srq *srq);
void vrnic_xsrq_hide(struct vrnic_srq *srq);

int vrnic_xrc_bind(struct vrnic_qp *target, struct vrnic_hold *hold, u32 srqn);
void vrnic_xrc_unbind(struct vrnic_qp *target, struct vrnic_hold *hold);
int vrnic_xrc_request(struct vrnic_qp *target, struct vrnic_hold *hold, u32 srqn);
bool vrnic_xrc_regain(struct vrnic_qp *target, struct vrnic_hold *hold);

#endif /* VRNIC_XRC_H */
