/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef VRNIC_LANE_H
#define VRNIC_LANE_H

struct vrnic_endpoint;
struct vrnic_fifo;
struct vrnic_injector;
struct vrnic_nflight;

/* Most lanes of a FIFO: peers that have no room at the same time. */
#define VRNIC_LANES	16

enum vrnic_step vrnic_lane_post(struct vrnic_injector *inj);
bool vrnic_lane_busy(struct vrnic_fifo *fifo, const struct vrnic_endpoint *ep);
void vrnic_lane_landed(struct vrnic_nflight *flight);
void vrnic_lane_leave(struct vrnic_endpoint *ep);
void vrnic_lanes_park(struct vrnic_fifo *fifo);
void vrnic_lanes_drain(struct vrnic_fifo *fifo);
void vrnic_lanes_unstall(struct vrnic_fifo *fifo);
void vrnic_lanes_free(struct vrnic_fifo *fifo);

#endif /* VRNIC_LANE_H */
