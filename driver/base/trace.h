/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tracepoints: creation and errors of queue pairs; fetch, execution and completion of descriptors;
 * packets.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vrnic

#if !defined(VRNIC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define VRNIC_TRACE_H

#include <linux/tracepoint.h>

#include "queue/opcode.h"

struct vrnic_nop;
struct vrnic_qp;

#define show_vrnic_step(step)				\
	__print_symbolic(step,				\
			 { VRNIC_STEP_DONE, "done" },	\
			 { VRNIC_STEP_DROP, "drop" },	\
			 { VRNIC_STEP_MORE, "more" },	\
			 { VRNIC_STEP_WAIT, "wait" },	\
			 { VRNIC_STEP_FAIL, "fail" })

/*
 * Other tracepoints name a queue pair by its number alone: this one tells whose it is. Those of
 * kernel consumers have no process.
 */
TRACE_EVENT(vrnic_qp_create,
	TP_PROTO(const struct vrnic_qp *qp),
	TP_ARGS(qp),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u8, type)
		__field(pid_t, pid)
		__array(char, comm, TASK_COMM_LEN)
		__array(char, dev, IB_DEVICE_NAME_MAX)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->type = qp->ibqp->qp_type;
		__entry->pid = vrnic_qp_is_users(qp) ? task_tgid_nr(current) : 0;
		/* get_task_comm() takes a lock in some releases */
		strscpy(__entry->comm,
			vrnic_qp_is_users(qp) ? current->group_leader->comm : "[kernel]",
			TASK_COMM_LEN);
		/* dev_name() is freed when the device gets another name */
		strscpy(__entry->dev, qp->dev->ibdev.name, IB_DEVICE_NAME_MAX);
	),
	TP_printk("qpn=%u dev=%s type=%u pid=%d comm=%s", __entry->qpn,
		  __entry->dev, __entry->type, __entry->pid, __entry->comm)
);

TRACE_EVENT(vrnic_fetch,
	TP_PROTO(const struct vrnic_qp *qp, const struct vrnic_desc *d),
	TP_ARGS(qp, d),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u8, opcode)
		__field(u8, flags)
		__field(u16, num_slots)
		__field(u64, cookie)
		__field(u64, remote_addr)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->opcode = d->opcode;
		__entry->flags = d->flags;
		__entry->num_slots = d->num_slots;
		__entry->cookie = d->cookie;
		__entry->remote_addr = d->remote_addr;
	),
	TP_printk("qpn=%u opcode=%u flags=0x%x slots=%u cookie=0x%llx remote=0x%llx",
		  __entry->qpn, __entry->opcode, __entry->flags,
		  __entry->num_slots, __entry->cookie, __entry->remote_addr)
);

TRACE_EVENT(vrnic_execute,
	TP_PROTO(const struct vrnic_qp *qp, const struct vrnic_op *op,
		 enum vrnic_step step),
	TP_ARGS(qp, op, step),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__string(name, op->info ? op->info->name : "?")
		__field(u64, done)
		__field(u64, total)
		__field(u8, step)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		vrnic_assign_str(name, op->info ? op->info->name : "?");
		__entry->done = op->done;
		__entry->total = op->total;
		__entry->step = step;
	),
	TP_printk("qpn=%u %s done=%llu of %llu: %s", __entry->qpn,
		  __get_str(name), __entry->done, __entry->total,
		  show_vrnic_step(__entry->step))
);

TRACE_EVENT(vrnic_complete,
	TP_PROTO(u32 cqn, const struct vrnic_cqe *cqe),
	TP_ARGS(cqn, cqe),
	TP_STRUCT__entry(
		__field(u32, cqn)
		__field(u32, qpn)
		__field(u64, cookie)
		__field(u8, status)
		__field(u8, opcode)
		__field(u32, vendor_err)
		__field(u32, byte_len)
	),
	TP_fast_assign(
		__entry->cqn = cqn;
		__entry->qpn = cqe->qpn;
		__entry->cookie = cqe->cookie;
		__entry->status = cqe->status;
		__entry->opcode = cqe->opcode;
		__entry->vendor_err = cqe->vendor_err;
		__entry->byte_len = cqe->byte_len;
	),
	TP_printk("cqn=%u qpn=%u cookie=0x%llx status=%u opcode=%u why=%u bytes=%u",
		  __entry->cqn, __entry->qpn, __entry->cookie,
		  __entry->status, __entry->opcode, __entry->vendor_err,
		  __entry->byte_len)
);

TRACE_EVENT(vrnic_qp_error,
	TP_PROTO(const struct vrnic_qp *qp, int event),
	TP_ARGS(qp, event),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(int, event)
	),
	TP_fast_assign(
		__entry->qpn = qp->qpn;
		__entry->event = event;
	),
	TP_printk("qpn=%u event=%d", __entry->qpn, __entry->event)
);

TRACE_EVENT(vrnic_packet,
	TP_PROTO(u32 qpn, bool sent, u8 opcode, u32 psn, u32 len),
	TP_ARGS(qpn, sent, opcode, psn, len),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(bool, sent)
		__field(u8, opcode)
		__field(u32, psn)
		__field(u32, len)
	),
	TP_fast_assign(
		__entry->qpn = qpn;
		__entry->sent = sent;
		__entry->opcode = opcode;
		__entry->psn = psn & 0xffffff;
		__entry->len = len;
	),
	TP_printk("qpn=%u %s opcode=0x%02x psn=0x%06x len=%u", __entry->qpn,
		  __entry->sent ? "tx" : "rx", __entry->opcode, __entry->psn,
		  __entry->len)
);

TRACE_EVENT(vrnic_native_fetch,
	TP_PROTO(u32 fifo, const struct vrnic_ndesc *d),
	TP_ARGS(fifo, d),
	TP_STRUCT__entry(
		__field(u32, fifo)
		__field(u32, endpoint)
		__field(u8, opcode)
		__field(u8, flags)
		__field(u16, num_slots)
		__field(u64, cookie)
		__field(u64, length)
		__field(u64, remote_addr)
	),
	TP_fast_assign(
		__entry->fifo = fifo;
		__entry->endpoint = d->endpoint;
		__entry->opcode = d->opcode;
		__entry->flags = d->flags;
		__entry->num_slots = d->num_slots;
		__entry->cookie = d->cookie;
		__entry->length = d->length;
		__entry->remote_addr = d->remote_addr;
	),
	TP_printk("fifo=%u endpoint=%u opcode=0x%x flags=0x%x slots=%u cookie=0x%llx length=%llu remote=0x%llx",
		  __entry->fifo, __entry->endpoint, __entry->opcode,
		  __entry->flags, __entry->num_slots, __entry->cookie,
		  __entry->length, __entry->remote_addr)
);

TRACE_EVENT(vrnic_native_execute,
	TP_PROTO(u32 fifo, const struct vrnic_nop *op, enum vrnic_step step),
	TP_ARGS(fifo, op, step),
	TP_STRUCT__entry(
		__field(u32, fifo)
		__field(u8, opcode)
		__field(u8, step)
		__field(u8, status)
		__field(u8, vendor_err)
		__field(u64, done)
		__field(u64, length)
	),
	TP_fast_assign(
		__entry->fifo = fifo;
		__entry->opcode = op->d.opcode;
		__entry->step = step;
		__entry->status = op->status;
		__entry->vendor_err = op->vendor_err;
		__entry->done = op->done;
		__entry->length = op->d.length;
	),
	TP_printk("fifo=%u opcode=0x%x done=%llu of %llu: %s status=%u why=%u",
		  __entry->fifo, __entry->opcode, __entry->done,
		  __entry->length, show_vrnic_step(__entry->step),
		  __entry->status, __entry->vendor_err)
);

#endif /* VRNIC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH base
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
