-- SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
--
-- vrnic.lua: shows in Wireshark and tshark what vrnic sends besides plain RoCEv2: datagrams that
-- make native links, and the messages that go over such links. Documentation/wire.rst has the
-- formats, driver/lib/link_wire.h and driver/lib/hdr.h define them.
--
-- Copy this file to ~/.local/lib/wireshark/plugins, or:  tshark -X lua_script:vrnic.lua -r FILE
-- The package vrnic-utils has it in /usr/share/vrnic.
--
-- Wireshark's own dissector of RoCEv2 knows no opcode of the manufacturer's range, and calls nobody
-- for it. So this dissector takes its place at UDP port 4791, calls it for each packet,
-- and adds what it knows. A packet that was captured on the sending host may be a burst, which is
-- several packets behind one UDP header; each of them is dissected.
--
-- The text runs with Lua 5.2 (Wireshark up to 4.2) and later: no operators for bits.

local vrnic = Proto("vrnic", "vrnic native link")

local ROCE_PORT = 4791
local BTH, ICRC = 12, 4			-- bytes
local HELLO, HELLO_QPN = 0xe0, 0xfffffe
local HELLO_BYTES, HEADER_BYTES = 56, 72
local HELLO_MAGIC = 0x76724e4c
local BURST = 0x100000			-- most data of one message
local HEAD_ALONE = 16384		-- longer messages have the header alone in their first packet
local MAX_MESSAGE, MAX_ROWS, SLOT, ROW, MAX_RGET = 4096, 2 ^ 20, 64, 32, 16
local MAX_PUTS, PUT_BYTES = 32, 16
local PSNS = 2 ^ 24

-- ---- names ----

local opcodes = {
	[0xc0] = "first packet", [0xc1] = "middle packet", [0xc2] = "last packet",
	[0xc4] = "only packet", [0xde] = "skip, last packet", [0xdf] = "skip, only packet",
	[0xe0] = "datagram about links",
}

local kinds = { "ASK", "YES", "NO", "BYE" }

local whys = {
	[0] = "none", "no such FIFO", "another secret", "another version or byte order",
	"no resources", "the link failed",
}

local ANSWER, PUT, GET, RMW, MESSAGE, RGET, NOTIFY, ERROR, TYPE, PING, PUTS = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
local ops = { "ANSWER", "PUT", "GET", "RMW", "MESSAGE", "RGET", "NOTIFY", "ERROR", "TYPE", "PING", "PUTS" }

local statuses = {
	[0] = "success", "local length error", "local queue pair operation error",
	"local EE context error", "local protection error", "flushed", "memory window bind error",
	"bad response", "local access error", "remote invalid request", "remote access error",
	"remote operation error", "retries exceeded", "RNR retries exceeded",
}

local vendor_errs = {
	[0] = "none", "opcode", "slots", "length", "no such key", "protection domain",
	"access right", "bounds", "alignment", "no answer", "no receive", "address handle",
	"not allowed by the queue pair", "wild ring index", "window cannot be bound", "endpoint",
	"counter", "type", "address cannot be pinned", "queue of remote gets is full",
	"peer went away", "injected fault",
}

-- bytes of payload that all packets of a message but its last one have
local mtus = { [256] = true, [512] = true, [1024] = true, [2048] = true, [4096] = true }

local rmws = { [0] = "FETCH", "SET", "ADD", "AND", "OR", "XOR" }

local descriptors = {
	[0x41] = "PUT", [0x42] = "GET", [0x43] = "RMW", [0x44] = "MESSAGE", [0x45] = "RGET",
	[0x46] = "NOTIFY", [0x47] = "FENCE", [0x48] = "FENCE_ALL", [0x49] = "WAIT",
}

local orders = { [0] = "little endian", "big endian" }

-- ---- fields ----

local f = {
	opcode = ProtoField.uint8("vrnic.opcode", "Opcode", base.HEX, opcodes),
	qpn = ProtoField.uint24("vrnic.qpn", "Destination queue pair", base.HEX),
	psn = ProtoField.uint24("vrnic.psn", "PSN"),
	-- datagrams
	magic = ProtoField.uint32("vrnic.hello.magic", "Magic", base.HEX),
	hello_version = ProtoField.uint8("vrnic.hello.version", "Version"),
	kind = ProtoField.uint8("vrnic.hello.kind", "Kind", base.DEC, kinds),
	order = ProtoField.uint8("vrnic.hello.order", "Byte order of the sender's memory", base.DEC, orders),
	why = ProtoField.uint8("vrnic.hello.why", "Reason", base.DEC, whys),
	secret = ProtoField.uint64("vrnic.hello.secret", "Secret", base.HEX),
	nonce = ProtoField.uint64("vrnic.hello.nonce", "Nonce", base.HEX),
	fifo = ProtoField.uint32("vrnic.hello.fifo", "FIFO asked for"),
	hello_qpn = ProtoField.uint32("vrnic.hello.qpn", "Sender's queue pair", base.HEX),
	hello_psn = ProtoField.uint32("vrnic.hello.psn", "First PSN"),
	mtu = ProtoField.uint32("vrnic.hello.mtu", "MTU"),
	to_qpn = ProtoField.uint32("vrnic.hello.to_qpn", "Receiver's queue pair", base.HEX),
	from_fifo = ProtoField.uint32("vrnic.hello.from_fifo", "Sender's FIFO"),
	task = ProtoField.uint32("vrnic.hello.task", "Sender's task"),
	-- the header of a message
	version = ProtoField.uint8("vrnic.version", "Version"),
	op = ProtoField.uint8("vrnic.op", "Message", base.DEC, ops),
	flags = ProtoField.uint8("vrnic.flags", "Flags", base.HEX),
	typed = ProtoField.bool("vrnic.flags.typed", "TYPED", 8, nil, 0x01),
	back = ProtoField.bool("vrnic.flags.back", "BACK", 8, nil, 0x02),
	again = ProtoField.bool("vrnic.flags.again", "AGAIN", 8, nil, 0x04),
	rows_first = ProtoField.bool("vrnic.flags.rows", "ROWS", 8, nil, 0x08),
	pack = ProtoField.bool("vrnic.flags.pack", "PACK", 8, nil, 0x10),
	status = ProtoField.uint8("vrnic.status", "Status", base.DEC, statuses),
	id = ProtoField.uint32("vrnic.id", "Number of the request"),
	data_len = ProtoField.uint32("vrnic.data_len", "Bytes of data"),
	key = ProtoField.uint32("vrnic.key", "Remote key", base.HEX),
	header_len = ProtoField.uint32("vrnic.header_len", "Bytes of the message's header"),
	type_told = ProtoField.uint32("vrnic.type_told", "Number of the type"),
	addr = ProtoField.uint64("vrnic.addr", "Remote address", base.HEX),
	total = ProtoField.uint64("vrnic.total", "Bytes of the operation"),
	width = ProtoField.uint64("vrnic.rmw.width", "Width"),
	operand = ProtoField.uint64("vrnic.rmw.operand", "Operand", base.HEX),
	compare = ProtoField.uint64("vrnic.rmw.compare", "Compare with", base.HEX),
	rmw = ProtoField.uint32("vrnic.rmw.op", "Operation", base.DEC, rmws, 0xff),
	compares = ProtoField.bool("vrnic.rmw.compares", "Only if equal", 32, nil, 0x100),
	puts = ProtoField.uint64("vrnic.puts", "Puts"),
	puts_from = ProtoField.uint64("vrnic.puts.from", "First put that is not done"),
	put_len = ProtoField.uint32("vrnic.puts.len", "Bytes of the put"),
	placed = ProtoField.uint64("vrnic.placed", "Bytes that were placed"),
	pos = ProtoField.uint64("vrnic.pos", "Place in the operation"),
	value = ProtoField.uint64("vrnic.value", "Value", base.HEX),
	counter = ProtoField.uint32("vrnic.counter", "Counter of the receiver", base.HEX),
	wants = ProtoField.uint32("vrnic.wants", "Bytes wanted"),
	rows_len = ProtoField.uint32("vrnic.rows_len", "Bytes of rows"),
	dispatch = ProtoField.uint32("vrnic.dispatch", "Dispatch id"),
	failed = ProtoField.uint32("vrnic.failed", "Operation that failed", base.HEX, descriptors),
	vendor_err = ProtoField.uint8("vrnic.vendor_err", "Reason", base.DEC, vendor_errs),
	reserved = ProtoField.bytes("vrnic.reserved", "Reserved"),
	type = ProtoField.uint32("vrnic.type", "Type"),
	cookie = ProtoField.uint64("vrnic.cookie", "Cookie", base.HEX),
	unused = ProtoField.bytes("vrnic.unused", "Unused by this message"),
	-- what follows it
	data = ProtoField.bytes("vrnic.data", "Data"),
	header = ProtoField.bytes("vrnic.header", "Message's header"),
	offset = ProtoField.uint32("vrnic.offset", "Place of this data in the message"),
	of = ProtoField.framenum("vrnic.of", "Message begins in"),
	of_op = ProtoField.uint8("vrnic.of_op", "Part of", base.DEC, ops),
	answers = ProtoField.framenum("vrnic.answers", "Answer to", base.NONE, frametype.REQUEST),
	answered = ProtoField.framenum("vrnic.answered", "Answered in", base.NONE, frametype.RESPONSE),
	time = ProtoField.relative_time("vrnic.time", "Time to the answer"),
	-- descriptors of a remote get, and rows of a type: in the order of the sender's memory
	d_opcode = ProtoField.uint8("vrnic.descriptor.opcode", "Opcode", base.HEX, descriptors),
	d_flags = ProtoField.uint8("vrnic.descriptor.flags", "Flags", base.HEX),
	d_slots = ProtoField.uint16("vrnic.descriptor.slots", "Slots"),
	d_endpoint = ProtoField.uint32("vrnic.descriptor.endpoint", "Endpoint"),
	d_cookie = ProtoField.uint64("vrnic.descriptor.cookie", "Cookie", base.HEX),
	d_length = ProtoField.uint64("vrnic.descriptor.length", "Length"),
	d_local = ProtoField.uint64("vrnic.descriptor.local_addr", "Local address", base.HEX),
	d_remote = ProtoField.uint64("vrnic.descriptor.remote_addr", "Remote address", base.HEX),
	d_lkey = ProtoField.uint32("vrnic.descriptor.lkey", "Local key", base.HEX),
	d_rkey = ProtoField.uint32("vrnic.descriptor.rkey", "Remote key", base.HEX),
	d_lcounter = ProtoField.uint32("vrnic.descriptor.local_counter", "Local counter", base.HEX),
	d_rcounter = ProtoField.uint32("vrnic.descriptor.remote_counter", "Remote counter", base.HEX),
	d_tcounter = ProtoField.uint32("vrnic.descriptor.target_counter", "Target counter", base.HEX),
	d_arg = ProtoField.uint32("vrnic.descriptor.arg", "Argument"),
	r_offset = ProtoField.int64("vrnic.row.offset", "Offset"),
	r_bytes = ProtoField.uint64("vrnic.row.bytes", "Bytes of a chunk"),
	r_count = ProtoField.uint64("vrnic.row.count", "Chunks"),
	r_stride = ProtoField.int64("vrnic.row.stride", "Stride"),
}

local fields = {}
for _, field in pairs(f) do
	fields[#fields + 1] = field
end
vrnic.fields = fields

local e = {
	malformed = ProtoExpert.new("vrnic.malformed", "No vrnic sends this",
				    expert.group.MALFORMED, expert.severity.ERROR),
	cut = ProtoExpert.new("vrnic.cut", "The capture has only a part of this packet",
			      expert.group.UNDECODED, expert.severity.NOTE),
	no_start = ProtoExpert.new("vrnic.no_start", "The capture lacks the beginning of this message",
				   expert.group.SEQUENCE, expert.severity.NOTE),
	refused = ProtoExpert.new("vrnic.refused", "Refused",
				  expert.group.RESPONSE_CODE, expert.severity.NOTE),
	postponed = ProtoExpert.new("vrnic.postponed", "No room at the receiver yet: it will be sent again",
				    expert.group.RESPONSE_CODE, expert.severity.CHAT),
	burst = ProtoExpert.new("vrnic.burst", "Several packets behind one UDP header",
				expert.group.COMMENTS_GROUP, expert.severity.CHAT),
}
vrnic.experts = { e.malformed, e.cut, e.no_start, e.refused, e.postponed, e.burst }

-- ---- what is remembered of earlier packets ----

local starts		-- [address and queue pair] = messages that began, in order of arrival
local parts		-- [frame and offset] = the message that a packet belongs to
local peers		-- [address and queue pair] = that of the link's other end
local asked		-- [address, queue pair, request] = { frame, time, op }
local answers		-- [frame of a request] = frame of its answer
local questions		-- [frame of an answer] = entry of asked
local big		-- [address] = true if the host's memory is big endian
local KEPT = 64		-- messages of a queue pair that a packet may belong to

function vrnic.init()
	starts, parts, peers, asked, answers, questions, big = {}, {}, {}, {}, {}, {}, {}
end

local function place(address, qpn)
	return tostring(address) .. "/" .. qpn
end

-- ---- checks ----

local function bit(value, mask)
	return math.floor(value / mask) % 2 == 1
end

-- rows_of(H): bytes of rows with which the data begin.
local function rows_of(h)
	return bit(h.flags, 8) and (h.op == GET and h.data or h.op == PUT and h.arg) or 0
end

-- complain(ITEM, TEXT): this packet is none that vrnic sends.
local function complain(item, text)
	item:add_proto_expert_info(e.malformed, text)
end

-- Bytes [pos, pos + n) lie within total, and total is a length. UInt64 would wrap.
local function within(pos, n, total)
	return total < UInt64(0, 0x80000000) and pos <= total and UInt64(n) <= total - pos
end

-- Are there whole rows, at the start of an operation, where the flags say that there are some?
local function rows_fit(h)
	local rows = rows_of(h)
	return not bit(h.flags, 8) or
	       (h.pos == UInt64(0) and rows > 0 and rows % ROW == 0 and rows <= h.data)
end

-- lengths_fit(H): as vrnic_nhdr_lengths_fit() in driver/lib/link_wire.h. True, or what is wrong.
local lengths_fit = {
	[ANSWER] = function() return true end,
	[PUT] = function(h)
		return not rows_fit(h) and "not a number of rows" or
		       within(h.pos, h.data - rows_of(h), h.total) or
		       "the data exceeds the operation"
	end,
	[GET] = function(h)
		return h.data ~= rows_of(h) and "a GET has no data" or
		       not rows_fit(h) and "not a number of rows" or
		       h.arg > BURST and "more than 1 MiB is wanted" or
		       within(h.pos, h.arg, h.total) or "what is wanted exceeds the operation"
	end,
	[RMW] = function(h)
		local width = h.total:tonumber()
		return h.data ~= 0 and "an RMW has no data" or
		       (width ~= 4 and width ~= 8) and "the width is not 4 or 8" or
		       (h.addr % UInt64(width)):tonumber() ~= 0 and "the address is not aligned" or
		       not rmws[h.arg % 0x100] and "there is no such operation" or
		       h.arg >= 0x200 and "there is no such operation" or true
	end,
	[MESSAGE] = function(h)
		local total = h.total:tonumber()
		return (total > MAX_MESSAGE or h.key > MAX_MESSAGE or h.data > MAX_MESSAGE) and
			"longer than 4096 bytes" or
		       h.data == h.key + total or "header and data are not all of the message"
	end,
	[PUTS] = function(h)
		local puts = h.total:tonumber()
		return (puts == 0 or puts > MAX_PUTS) and "not 1 to 32 puts" or
		       h.data > MAX_MESSAGE and "longer than 4096 bytes" or
		       h.counter2 ~= 0 and "names two counters" or
		       h.pos <= h.total or "begins behind the last put"
	end,
	[RGET] = function(h)
		return h.data > 0 and h.data % SLOT == 0 and h.data <= MAX_RGET * SLOT or
		       "not 1 to 16 descriptors"
	end,
	[TYPE] = function(h)
		local total = h.total:tonumber()
		return (total == 0 or total % ROW ~= 0 or total / ROW > MAX_ROWS) and
			"not a number of rows" or
		       within(h.pos, h.data, h.total) or "the rows exceed the type"
	end,
}
local function no_data(h)
	return h.data == 0 or "this message has no data"
end
lengths_fit[NOTIFY], lengths_fit[ERROR], lengths_fit[PING] = no_data, no_data, no_data

-- The flags that a message may have, beside none.
local flags_of = { [ANSWER] = { [4] = true }, [PUT] = { [1] = true, [9] = true },
		   [GET] = { [1] = true, [9] = true, [0x11] = true, [0x19] = true },
		   [NOTIFY] = { [2] = true } }

-- ---- the header of a message ----

-- What the members mean, where that depends on the message: a field, or nil if it has none.
local meaning = {
	key = { at = 12, len = 4, [PUT] = f.key, [GET] = f.key, [RMW] = f.key,
		[MESSAGE] = f.header_len, [TYPE] = f.type_told },
	addr = { at = 16, len = 8, [PUT] = f.addr, [GET] = f.addr, [RMW] = f.addr },
	total = { at = 24, len = 8, [PUT] = f.total, [GET] = f.total, [RMW] = f.width,
		  [MESSAGE] = f.total, [TYPE] = f.total, [ERROR] = f.placed, [PUTS] = f.puts },
	pos = { at = 32, len = 8, [PUT] = f.pos, [GET] = f.pos, [TYPE] = f.pos,
		[RMW] = f.operand, [ANSWER] = f.value, [PUTS] = f.puts_from },
	counter1 = { at = 40, len = 4, any = f.counter },
	counter2 = { at = 44, len = 4, any = f.counter },
	arg = { at = 48, len = 4, [GET] = f.wants, [PUT] = f.rows_len, [MESSAGE] = f.dispatch, [NOTIFY] = f.dispatch,
		[ERROR] = f.failed, [RMW] = f.rmw },
	vendor_err = { at = 52, len = 1, [ANSWER] = f.vendor_err, [ERROR] = f.vendor_err },
	type = { at = 56, len = 4, [PUT] = f.type, [GET] = f.type },
	cookie = { at = 64, len = 8, [NOTIFY] = f.cookie, [ERROR] = f.cookie, [RMW] = f.compare,
		   [MESSAGE] = f.cookie },
}
local members = { "key", "addr", "total", "pos", "counter1", "counter2", "arg", "vendor_err",
		  "type", "cookie" }

local function is_zero(range)
	return not range:bytes():tohex():find("[^0]")
end

local function add_members(tree, tvb, op)
	for _, name in ipairs(members) do
		local m = meaning[name]
		local field, range = m[op] or m.any, tvb(m.at, m.len)
		if field then
			tree:add(field, range)
		elseif not is_zero(range) then
			tree:add(f.unused, range)
		end
	end
	if op == RMW then
		tree:add(f.compares, tvb(48, 4))
	end
end

local function add_flags(tree, tvb, op)
	local item = tree:add(f.flags, tvb(2, 1))
	item:add(f.typed, tvb(2, 1))
	item:add(f.back, tvb(2, 1))
	item:add(f.again, tvb(2, 1))
	item:add(f.rows_first, tvb(2, 1))
	item:add(f.pack, tvb(2, 1))
	local flags = tvb(2, 1):uint()
	if flags ~= 0 and not (flags_of[op] or {})[flags] then
		complain(item, "a flag that this message cannot have")
	end
end

local function add_reserved(tree, tvb, at, len)
	local item = tree:add(f.reserved, tvb(at, len))
	if not is_zero(tvb(at, len)) then
		complain(item, "reserved bytes are not zero")
	end
end

local function read_header(tvb)
	return {
		op = tvb(1, 1):uint(), flags = tvb(2, 1):uint(), status = tvb(3, 1):uint(),
		id = tvb(4, 4):uint(), data = tvb(8, 4):uint(), key = tvb(12, 4):uint(),
		addr = tvb(16, 8):uint64(), total = tvb(24, 8):uint64(), pos = tvb(32, 8):uint64(),
		counter2 = tvb(44, 4):uint(), arg = tvb(48, 4):uint(), vendor_err = tvb(52, 1):uint(),
	}
end

-- add_header(TREE, TVB): the 72 bytes at the beginning. Returns what they say, or nil if they are
-- no header.
local function add_header(tree, tvb)
	local h = read_header(tvb)
	local version = tree:add(f.version, tvb(0, 1))
	local op = tree:add(f.op, tvb(1, 1))
	if tvb(0, 1):uint() ~= 3 then
		complain(version, "another version")
	end
	if not ops[h.op] then
		complain(op, "there is no such message")
		return nil
	end
	add_flags(tree, tvb, h.op)
	if h.op == ANSWER or h.op == ERROR then
		tree:add(f.status, tvb(3, 1))
	end
	if h.op ~= PING and h.op ~= PUTS then
		tree:add(f.id, tvb(4, 4))
	end
	local len = tree:add(f.data_len, tvb(8, 4))
	local fit = lengths_fit[h.op](h)
	if fit ~= true then
		complain(len, fit)
	elseif h.data > BURST then
		complain(len, "more than 1 MiB of data")
	end
	add_members(tree, tvb, h.op)
	add_reserved(tree, tvb, 53, 3)
	add_reserved(tree, tvb, 60, 4)
	return h
end

-- ---- what follows a header ----

local function by_order(tree, reversed)
	return function(field, range)
		if reversed then
			tree:add(field, range)
		else
			tree:add_le(field, range)
		end
	end
end

local function add_descriptor(tree, range, is_big)
	local opcode = range(0, 1):uint()
	local item = tree:add(range, "Descriptor: " .. (descriptors[opcode] or "unknown"))
	local add = by_order(item, is_big)
	add(f.d_opcode, range(0, 1))
	add(f.d_flags, range(1, 1))
	add(f.d_slots, range(2, 2))
	add(f.d_endpoint, range(4, 4))
	add(f.d_cookie, range(8, 8))
	add(f.d_length, range(16, 8))
	add(f.d_local, range(24, 8))
	add(f.d_remote, range(32, 8))
	add(f.d_lkey, range(40, 4))
	add(f.d_rkey, range(44, 4))
	add(f.d_lcounter, range(48, 4))
	add(f.d_rcounter, range(52, 4))
	add(f.d_tcounter, range(56, 4))
	add(f.d_arg, range(60, 4))
end

local function add_row(tree, range, is_big)
	local item = tree:add(range, "Row")
	local add = by_order(item, is_big)
	add(f.r_offset, range(0, 8))
	add(f.r_bytes, range(8, 8))
	add(f.r_count, range(16, 8))
	add(f.r_stride, range(24, 8))
end

-- add_array(TREE, RANGE, SIZE, SKIP, ADD, BIG): whole elements of SIZE bytes; the first SKIP bytes
-- belong to one that began in the packet before.
local function add_array(tree, range, size, skip, add, is_big)
	local at = skip
	while at + size <= range:len() do
		add(tree, range(at, size), is_big)
		at = at + size
	end
end

local function add_message(tree, range, msg, offset)
	local left = math.max(0, math.min(msg.key - offset, range:len()))
	if left > 0 then
		tree:add(f.header, range(0, left))
	end
	if left < range:len() then
		tree:add(f.data, range(left, range:len() - left))
	end
end

-- add_puts(TREE, RANGE, MSG): each is 16 bytes, and its data up to a multiple of 8.
local function add_puts(tree, range, msg)
	local at, puts = 0, 0
	while at + PUT_BYTES <= range:len() do
		local len = range(at + 12, 4):uint()
		local whole = PUT_BYTES + math.ceil(len / 8) * 8
		if len == 0 or at + whole > range:len() then
			break
		end
		local item = tree:add(range(at, whole), "Put of " .. len .. " bytes")
		item:add(f.addr, range(at, 8))
		item:add(f.key, range(at + 8, 4))
		item:add(f.put_len, range(at + 12, 4))
		item:add(f.data, range(at + PUT_BYTES, len))
		at, puts = at + whole, puts + 1
	end
	if range:len() == msg.data and (at ~= msg.data or puts ~= msg.total:tonumber()) then
		complain(tree, "the puts are not those that the header announces")
	end
end

-- add_data(TREE, RANGE, MSG, OFFSET): data of a message from OFFSET on.
local function add_data(tree, range, msg, offset)
	if msg.op == MESSAGE then
		add_message(tree, range, msg, offset)
		return
	elseif msg.op == PUTS then
		add_puts(tree, range, msg)
		return
	end
	local item = tree:add(f.data, range)
	local rows = math.max(0, math.min(rows_of(msg) - offset, range:len()))
	if rows > 0 then
		add_array(item, range(0, rows), ROW, -offset % ROW, add_row, msg.big)
	elseif msg.op == RGET then
		add_array(item, range, SLOT, -offset % SLOT, add_descriptor, msg.big)
	elseif msg.op == TYPE then
		-- a message begins with a whole row, and its last one ends with a whole one
		add_array(item, range, ROW, -offset % ROW, add_row, msg.big)
	end
end

-- ---- which message a packet belongs to, and which request an answer ----

local function remember_start(packet, msg)
	local list = starts[packet.to] or {}
	starts[packet.to] = list
	if #list >= KEPT then
		table.remove(list, 1)
	end
	list[#list + 1] = msg
end

-- find_start(PACKET): of the messages that began, the one with the nearest PSN before the packet's.
local function find_start(packet)
	local best, least = nil, PSNS / 2
	for _, msg in ipairs(starts[packet.to] or {}) do
		local distance = (packet.psn - msg.psn) % PSNS
		if distance > 0 and distance < least then
			best, least = msg, distance
		end
	end
	-- the largest message has 1 MiB and a header in packets of at least 256 bytes
	return least <= BURST / 256 + 1 and best or nil
end

local function remember_request(packet, msg, pinfo)
	local key = packet.to .. "/" .. msg.id
	local known = asked[key]
	-- sent again, for want of an acknowledgment: the time counts from the first one
	if not known or known.done or known.op ~= msg.op then
		asked[key] = { frame = pinfo.number, time = pinfo.rel_ts, op = msg.op }
	end
end

local function remember_answer(packet, msg, pinfo)
	local question = peers[packet.to] and asked[peers[packet.to] .. "/" .. msg.id]
	if not question then
		return
	end
	question.done = true
	questions[pinfo.number .. "/" .. packet.at] = question
	answers[question.frame] = answers[question.frame] or pinfo.number
end

local function remember(packet, msg, pinfo)
	remember_start(packet, msg)
	if msg.op == ANSWER then
		remember_answer(packet, msg, pinfo)
	elseif msg.op ~= PING and msg.op ~= PUTS then
		remember_request(packet, msg, pinfo)
	end
end

-- ---- texts for the list of packets ----

local function status_text(msg)
	if bit(msg.flags, 4) then
		return "AGAIN"
	elseif msg.status == 0 then
		return "success"
	end
	return (statuses[msg.status] or "status " .. msg.status) .. " (" ..
	       (vendor_errs[msg.vendor_err] or msg.vendor_err) .. ")"
end

local function total_text(msg)
	return string.format("%s bytes at %s of %s, key 0x%x",
			     msg.op == GET and msg.arg or msg.data - rows_of(msg), tostring(msg.pos),
			     tostring(msg.total), msg.key)
end

local text_of = {
	[ANSWER] = function(msg)
		return status_text(msg) .. (msg.data > 0 and ", " .. msg.data .. " bytes" or "")
	end,
	[PUT] = total_text,
	[GET] = total_text,
	[RMW] = function(msg)
		return (rmws[msg.arg % 0x100] or "?") .. " of " .. tostring(msg.total) .. " bytes"
	end,
	[MESSAGE] = function(msg)
		return string.format("dispatch id %d, %d + %s bytes", msg.arg, msg.key, tostring(msg.total))
	end,
	[RGET] = function(msg) return math.floor(msg.data / SLOT) .. " descriptors" end,
	[NOTIFY] = function(msg) return "dispatch id " .. msg.arg end,
	[ERROR] = status_text,
	[TYPE] = function(msg)
		return string.format("%d, %s rows", msg.key, tostring(msg.total / UInt64(ROW)))
	end,
	[PING] = function() return "" end,
	[PUTS] = function(msg)
		return string.format("%s puts from number %s", tostring(msg.total), tostring(msg.pos))
	end,
}

local function describe(msg)
	local text = ops[msg.op]
	if msg.op == PUTS then
		text = text .. ": " .. text_of[msg.op](msg)
	elseif msg.op ~= PING then
		text = text .. " " .. msg.id .. ": " .. text_of[msg.op](msg)
	end
	return text
end

-- ---- packets ----

local function duration(seconds)
	return NSTime(math.floor(seconds), math.floor(seconds % 1 * 1e9))
end

local function add_answer(tree, msg, packet, pinfo)
	local question = questions[pinfo.number .. "/" .. packet.at]
	if question then
		tree:add(f.answers, question.frame):set_generated()
		tree:add(f.time, duration(pinfo.rel_ts - question.time)):set_generated()
		tree:append_text(" to " .. ops[question.op])
	end
	if bit(msg.flags, 4) then
		tree:add_proto_expert_info(e.postponed)
	elseif msg.status ~= 0 then
		tree:add_proto_expert_info(e.refused, "Refused: " .. status_text(msg))
	end
end

local function add_exchange(tree, msg, packet, pinfo)
	if msg.op == ANSWER then
		add_answer(tree, msg, packet, pinfo)
	elseif answers[pinfo.number] then
		tree:add(f.answered, answers[pinfo.number]):set_generated()
	end
	if msg.op == ERROR then
		tree:add_proto_expert_info(e.refused, "Failed: " .. status_text(msg))
	end
end

-- head_alone(MSG, LEN): a long message may have no data in its first packet.
local function head_alone(msg, len)
	return len == 0 and msg.data + HEADER_BYTES > HEAD_ALONE
end

-- dissect_start(TREE, TVB, PACKET, PINFO): the first or only packet of a message.
local function dissect_start(tree, tvb, packet, pinfo)
	if packet.len < HEADER_BYTES then
		complain(tree, "too short for the header of a message")
		return
	elseif tvb:len() < HEADER_BYTES then
		tree:add_proto_expert_info(e.cut)
		return
	end
	local msg = add_header(tree, tvb)
	if not msg then
		return
	end
	msg.psn, msg.frame, msg.len, msg.big = packet.psn, pinfo.number, packet.len, packet.big
	msg.mtu = mtus[packet.len] and packet.len
	tree:append_text(", " .. describe(msg))
	packet.text = describe(msg)
	if not pinfo.visited then
		remember(packet, msg, pinfo)
	end
	local len = packet.len - HEADER_BYTES
	if not packet.only and not mtus[packet.len] and not head_alone(msg, len) then
		complain(tree, "the first packet is not as long as an MTU")
	end
	if packet.only and len ~= msg.data then
		complain(tree, string.format("%d bytes of data where the header says %d", len, msg.data))
	elseif not packet.only and len >= msg.data then
		complain(tree, "no data is left for the packets that follow")
	end
	if tvb:len() < packet.len then
		tree:add_proto_expert_info(e.cut)
	end
	len = math.min(len, tvb:len() - HEADER_BYTES)
	if len > 0 then
		add_data(tree, tvb(HEADER_BYTES, len), msg, 0)
	end
	add_exchange(tree, msg, packet, pinfo)
end

local function check_end(tree, packet, msg, offset)
	if not offset then
		complain(tree, "no MTU agrees with its length")
		return
	end
	local ends = offset + packet.len
	if ends > msg.data or (packet.last and ends ~= msg.data) then
		complain(tree, string.format("data up to byte %d, of %d", ends, msg.data))
	elseif not packet.last and ends == msg.data then
		complain(tree, "no data is left for the last packet")
	elseif not packet.last and packet.len ~= msg.mtu then
		complain(tree, "not as long as an MTU, or as another packet of the message")
	end
end

-- offset_of(PACKET, MSG): where its bytes belong. All packets between the first and the last one
-- are as long as an MTU. If none of them was captured, the length of the last one tells.
local function offset_of(packet, msg)
	local first, between = msg.len - HEADER_BYTES, (packet.psn - msg.psn) % PSNS - 1
	if not msg.mtu and not packet.last then
		msg.mtu = mtus[packet.len] and packet.len
	elseif not msg.mtu and between > 0 then
		local mtu = (msg.data - packet.len - first) / between
		msg.mtu = mtus[mtu] and mtu
	end
	return between == 0 and first or msg.mtu and first + between * msg.mtu
end

-- dissect_part(TREE, TVB, PACKET, PINFO): a further packet of a message.
local function dissect_part(tree, tvb, packet, pinfo)
	local key = pinfo.number .. "/" .. packet.at
	if not pinfo.visited then
		parts[key] = find_start(packet)
	end
	local msg = parts[key]
	if packet.len == 0 then
		complain(tree, "no data")
	elseif tvb:len() < packet.len then
		tree:add_proto_expert_info(e.cut)
	end
	if not msg then
		tree:add_proto_expert_info(e.no_start)
		if tvb:len() > 0 then
			tree:add(f.data, tvb(0, math.min(packet.len, tvb:len())))
		end
		return
	end
	local place_of = offset_of(packet, msg)
	local offset = place_of or 0
	packet.text = string.format("%s %d: bytes from %d of %d", ops[msg.op], msg.id, offset, msg.data)
	tree:append_text(", " .. packet.text)
	tree:add(f.of, msg.frame):set_generated()
	tree:add(f.of_op, msg.op):set_generated()
	tree:add(f.offset, offset):set_generated()
	check_end(tree, packet, msg, place_of)
	local len = math.min(packet.len, tvb:len())
	if len > 0 then
		add_data(tree, tvb(0, len), msg, offset)
	end
end

-- The members of a datagram, in order: field, bytes.
local hello_members = {
	{ f.magic, 4 }, { f.hello_version, 1 }, { f.kind, 1 }, { f.order, 1 }, { f.why, 1 },
	{ f.secret, 8 }, { f.nonce, 8 }, { f.fifo, 4 }, { f.hello_qpn, 4 }, { f.hello_psn, 4 },
	{ f.mtu, 4 }, { f.to_qpn, 4 }, { f.from_fifo, 4 }, { f.task, 4 },
}

local function check_hello(tree, tvb)
	if tvb(0, 4):uint() ~= HELLO_MAGIC then
		complain(tree, "another magic number")
	end
	if not kinds[tvb(5, 1):uint()] then
		complain(tree, "there is no such kind")
	end
	if is_zero(tvb(16, 8)) then
		complain(tree, "the nonce is zero")
	end
	for _, at in ipairs({ 28, 32, 40 }) do
		if tvb(at, 1):uint() ~= 0 then
			complain(tree, "a queue pair or PSN of more than 24 bits")
		end
	end
end

-- A YES tells which two queue pairs are a link.
local function remember_link(tvb, pinfo)
	local from = place(pinfo.src, tvb(28, 4):uint())
	local to = place(pinfo.dst, tvb(40, 4):uint())
	peers[from], peers[to] = to, from
end

local function hello_text(tvb)
	local kind, why = tvb(5, 1):uint(), tvb(7, 1):uint()
	local text = (kinds[kind] or "?") .. ": "
	if kind == 1 then
		return text .. "FIFO " .. tvb(24, 4):uint() .. ", from FIFO " .. tvb(44, 4):uint()
	elseif kind == 3 or why ~= 0 then
		return text .. (whys[why] or "reason " .. why)
	end
	return text .. string.format("queue pairs 0x%x and 0x%x", tvb(28, 4):uint(), tvb(40, 4):uint())
end

local function dissect_hello(tree, tvb, packet, pinfo)
	if packet.qpn ~= HELLO_QPN then
		complain(tree, "not to the queue pair number of these datagrams, 0xfffffe")
	end
	if packet.len ~= HELLO_BYTES then
		complain(tree, string.format("%d bytes, and it should have %d", packet.len, HELLO_BYTES))
		return
	elseif tvb:len() < HELLO_BYTES then
		tree:add_proto_expert_info(e.cut)
		return
	end
	local at = 0
	for _, member in ipairs(hello_members) do
		tree:add(member[1], tvb(at, member[2]))
		at = at + member[2]
	end
	add_reserved(tree, tvb, at, 4)
	check_hello(tree, tvb)
	packet.text = hello_text(tvb)
	tree:append_text(", " .. packet.text)
	if tvb(5, 1):uint() == 3 then
		tree:add_proto_expert_info(e.refused, "Refused: " .. (whys[tvb(7, 1):uint()] or "?"))
	end
	big[tostring(pinfo.src)] = tvb(6, 1):uint() == 1
	if not pinfo.visited and tvb(5, 1):uint() == 2 then
		remember_link(tvb, pinfo)
	end
end

-- read_packet(TVB, LEN, AT, PINFO): the BTH of a packet of LEN bytes.
local function read_packet(tvb, len, at, pinfo)
	local opcode, qpn = tvb(0, 1):uint(), tvb(5, 3):uint()
	local pad = math.floor(tvb(1, 1):uint() / 0x10) % 4
	return {
		opcode = opcode, qpn = qpn, psn = tvb(9, 3):uint(), at = at,
		to = place(pinfo.dst, qpn), big = big[tostring(pinfo.src)],
		len = len - BTH - pad - ICRC,
		only = opcode == 0xc4, last = opcode == 0xc2,
	}
end

local function dissect_ours(tree, tvb, packet, pinfo)
	local payload = tvb(BTH):tvb()
	if packet.len < 0 then
		complain(tree, "too short for pad and ICRC")
	elseif packet.opcode == HELLO then
		dissect_hello(tree, payload, packet, pinfo)
	elseif packet.opcode == 0xc0 or packet.only then
		dissect_start(tree, payload, packet, pinfo)
	elseif packet.opcode == 0xde or packet.opcode == 0xdf then
		packet.text = "skip a put that failed"
	elseif opcodes[packet.opcode] then
		dissect_part(tree, payload, packet, pinfo)
	else
		complain(tree, "there is no such opcode")
	end
end

-- dissect_packet(TVB, LEN, AT, PINFO, TREE): a packet of LEN bytes from its BTH on; AT tells the
-- packets of a burst from each other. Returns a text for the list of packets.
local function dissect_packet(tvb, len, at, pinfo, tree)
	local packet = read_packet(tvb, len, at, pinfo)
	local item = tree:add(vrnic, tvb(BTH), "vrnic " .. (packet.opcode == HELLO and "datagram" or "native link"))
	item:add(f.opcode, tvb(0, 1))
	item:add(f.qpn, tvb(5, 3))
	item:add(f.psn, tvb(9, 3))
	dissect_ours(item, tvb, packet, pinfo)
	return packet.text or opcodes[packet.opcode] or "unknown opcode"
end

-- ---- RoCEv2 ----

local standard = DissectorTable.get("udp.port"):get_dissector(ROCE_PORT)

-- burst_segment(RAW, LEN): bytes of each packet of a burst; LEN if this is a single packet. Behind
-- the first packet, there is a BTH with the same key and queue pair, and the next PSN.
local function burst_segment(raw, len)
	local psn = raw:byte(10) * 0x10000 + raw:byte(11) * 0x100 + raw:byte(12)
	local same, from = raw:sub(3, 8), BTH + ICRC + 3
	while true do
		local at = raw:find(same, from, true)
		if not at or at + 9 > #raw then
			return len
		end
		local next_psn = raw:byte(at + 7) * 0x10000 + raw:byte(at + 8) * 0x100 + raw:byte(at + 9)
		if next_psn == (psn + 1) % PSNS then
			return at - 3
		end
		from = at + 1
	end
end

-- dissect_one(...): as dissect_packet(), for any opcode. Returns the text for the list of packets.
local function dissect_one(tvb, len, at, pinfo, tree)
	if standard then
		standard:call(tvb, pinfo, tree)
	end
	if tvb:len() > BTH and tvb(0, 1):uint() >= 0xc0 then
		pinfo.cols.protocol = "vrnic"
		return dissect_packet(tvb, len, at, pinfo, tree)
	end
	return nil
end

function vrnic.dissector(tvb, pinfo, tree)
	local len = tvb:reported_len()
	if tvb:len() < BTH then
		return standard and standard:call(tvb, pinfo, tree)
	end
	local segment = burst_segment(tvb:raw(), len)
	local at, texts = 0, {}
	if segment < len then
		tree:add_proto_expert_info(e.burst)
	end
	while at < len do
		local n = math.min(segment, len - at)
		if at + BTH > tvb:len() then
			break
		end
		texts[#texts + 1] = dissect_one(tvb(at, math.min(n, tvb:len() - at)):tvb(), n, at, pinfo, tree)
		at = at + n
	end
	if #texts > 0 then
		pinfo.cols.info = table.concat(texts, " + ")
	end
end

DissectorTable.get("udp.port"):add(ROCE_PORT, vrnic)
