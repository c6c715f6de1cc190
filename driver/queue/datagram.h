/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Datagrams, as the code of their targets sees them. */
#ifndef VRNIC_DATAGRAM_H
#define VRNIC_DATAGRAM_H

#include <linux/types.h>

struct vrnic_qp;
struct vrnic_sgl;

#define VRNIC_GRH_BYTES		40

/**
 * struct vrnic_datagram - a UD message on its way
 * @qkey: queue key that the target must have
 * @src_qpn: queue pair number of the sender
 * @len: bytes of data
 * @vlan: 1 + the VLAN that the datagram came by; 0: none
 * @with_imm: @imm is valid
 * @solicited: the sender asked for an event
 * @imm: immediate data in network order
 * @grh: first bytes of the receive buffer
 * @network_hdr: kind of header in @grh
 * @put: writes the data to the receive buffer
 * @arg: for @put
 */
struct vrnic_datagram {
	u32 qkey;
	u32 src_qpn;
	u32 len;
	u16 vlan;
	bool with_imm;
	bool solicited;
	u32 imm;
	u8 grh[VRNIC_GRH_BYTES];
	u8 network_hdr;
	void (*put)(struct vrnic_datagram *dg, struct vrnic_sgl *dst);
	void *arg;
};

bool vrnic_ud_accepts(const struct vrnic_qp *to, const struct vrnic_datagram *dg);
bool vrnic_ud_deliver(struct vrnic_qp *to, struct vrnic_datagram *dg);

#endif /* VRNIC_DATAGRAM_H */
