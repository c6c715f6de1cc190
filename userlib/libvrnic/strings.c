// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Version and errors as text. */

#include "lib.h"

VRNIC_EXPORT
const char *vrnic_version(void)
{
	return LIBVRNIC_VERSION;
}

static const char * const vendor_errs[] = {
	[VRNIC_VERR_NONE] = "no error",
	[VRNIC_VERR_OPCODE] = "operation not valid here",
	[VRNIC_VERR_SLOTS] = "number of slots does not fit the contents",
	[VRNIC_VERR_LENGTH] = "length not valid",
	[VRNIC_VERR_KEY] = "no memory has this key",
	[VRNIC_VERR_PD] = "protection domains differ",
	[VRNIC_VERR_ACCESS] = "memory lacks the right",
	[VRNIC_VERR_BOUNDS] = "address and length leave the memory",
	[VRNIC_VERR_ALIGN] = "address not aligned",
	[VRNIC_VERR_PEER] = "peer does not answer",
	[VRNIC_VERR_RNR] = "peer posts no receive",
	[VRNIC_VERR_AH] = "no such address handle",
	[VRNIC_VERR_QP_ACCESS] = "queue pair does not allow the operation",
	[VRNIC_VERR_RING] = "producer index is wild",
	[VRNIC_VERR_BIND] = "window cannot be bound so",
	[VRNIC_VERR_ENDPOINT] = "no such endpoint",
	[VRNIC_VERR_COUNTER] = "no such counter, or not open to peers",
	[VRNIC_VERR_TYPE] = "no such type, or sizes differ",
	[VRNIC_VERR_FAULT] = "address cannot be pinned",
	[VRNIC_VERR_FULL] = "peer's queue of remote gets stays full",
	[VRNIC_VERR_CANCELED] = "peer or FIFO went away on the way",
	[VRNIC_VERR_INJECTED] = "a fault that was injected",
	[VRNIC_VERR_SRQ] = "no such SRQ in the XRC domain",
};

VRNIC_EXPORT
const char *vrnic_vendor_err_str(uint32_t vendor_err)
{
	if (vendor_err >= sizeof(vendor_errs) / sizeof(vendor_errs[0]) ||
	    !vendor_errs[vendor_err])
		return "unknown error";
	return vendor_errs[vendor_err];
}
