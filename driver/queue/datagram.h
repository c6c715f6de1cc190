/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Datagrams that leave a queue pair, or arrive at one, from this host or from the wire. */
#ifndef VRNIC_DATAGRAM_H
#define VRNIC_DATAGRAM_H

#include <linux/types.h>

struct vrnic_op;
struct vrnic_qp;
struct vrnic_sgl;

#define VRNIC_GRH_BYTES		40

/**
 * struct vrnic_datagram - a UD message between sender and target
 * @qkey: Q_Key of the sender; the target drops the datagram unless it has the same
 * @src_qpn: queue pair number of the sender
 * @len: bytes of data
 * @vlan: 1 + VLAN id that the datagram came with; 0: none
 * @with_imm: @imm is valid
 * @solicited: the sender asked for a solicited event
 * @imm: immediate data in network order
 * @grh: GRH or IP header, which goes into the receive buffer ahead of the data
 * @network_hdr: kind of header in @grh: RDMA_NETWORK_*
 * @put: writes the data to the receive buffer, at @dst's position behind @grh
 * @arg: private to @put
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

int vrnic_datagram_open(struct vrnic_qp *qp, struct vrnic_op *op);
int vrnic_datagram_begin(struct vrnic_qp *to, u32 len);
bool vrnic_ud_accepts(const struct vrnic_qp *to, const struct vrnic_datagram *dg);
int vrnic_ud_deliver(struct vrnic_qp *to, struct vrnic_datagram *dg);

#endif /* VRNIC_DATAGRAM_H */
