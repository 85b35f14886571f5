import ByteKernels

/// The calls of the hot path, made from here because a loop's own parts need no reference counting during a call.
extension Loop {
    @inline(never)
    func receive(_ descriptor: Descriptor, at range: Range<Int>) -> Int {
        self.receiveBuffer.lend(range) { self.system.receive(descriptor, into: &$0) }
    }

    /// Shows `consumer` the first `total` bytes of the receive buffer.
    /// - Returns: how many of them it used; all where there is nobody.
    @inline(never)
    func offer(_ total: Int, to consumer: (any TransportConsumer)?) -> Int {
        self.receiveBuffer.lend(0..<total) { consumer?.bytesReceived(&$0) ?? total }
    }

    /// Into the beginning of the receive buffer.
    func takePassed(atMost count: Int) -> Int {
        self.receiveBuffer.lend(0..<min(count, Self.receiveCapacity)) { self.system.takePassed(into: &$0) }
    }

    @inline(never)
    func send(_ descriptor: Descriptor, _ bytes: RawSpan) -> Int {
        self.system.send(descriptor, bytes)
    }

    @inline(never)
    func send(_ descriptor: Descriptor, _ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        self.system.send(descriptor, head, bytes)
    }

    @inline(never)
    func gather(upTo count: Int, _ fill: (inout MutableRawSpan) -> Int) -> Int {
        self.scratch.add(upTo: count, fill)
    }

    @inline(never)
    func gather(_ head: LeadingBytes, _ bytes: RawSpan) -> Int {
        self.scratch.add(head, bytes)
    }
}
