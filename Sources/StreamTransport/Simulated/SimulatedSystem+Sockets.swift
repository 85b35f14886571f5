import ByteKernels

extension SimulatedSystem {
    package func listen(_ address: SocketAddress, options: ListenOptions) -> Result<Descriptor, SystemError> {
        if let refusal = self.process.descriptorRefusal() { return .failure(refusal) }
        do throws(SystemError) {
            return .success(self.process.open(.listener(try self.network.listen(address, options: options))))
        } catch {
            return .failure(error)
        }
    }

    package func accept(_ listener: Descriptor) -> Result<AcceptedSocket, SystemError> {
        guard case .listener(let socket) = self.process.socket(listener, "accept") else {
            return .failure(.badDescriptor)
        }
        if let refusal = self.process.descriptorRefusal() { return .failure(refusal) }
        guard !socket.isEmpty, !self.network.chance.happens(self.network.faults.spuriousWouldBlock),
            let stream = socket.dequeue()
        else { return .failure(.wouldBlock) }
        self.network.note(.accepted, socket.number, stream.number)
        let descriptor = self.process.open(.stream(stream))
        if let inherited = socket.inherited { self.apply(inherited, to: stream) }
        return .success(AcceptedSocket(descriptor: descriptor, peer: stream.remoteAddress))
    }

    package var hasDescriptors: Bool { self.process.descriptorRefusal() == nil }

    package func connect(_ address: SocketAddress) -> Result<Descriptor, SystemError> {
        if let refusal = self.process.descriptorRefusal() { return .failure(refusal) }
        do throws(SystemError) {
            let stream = try self.network.connect(address, from: self.process.address)
            return .success(self.process.open(.stream(stream)))
        } catch {
            return .failure(error)
        }
    }

    package func connectError(_ descriptor: Descriptor) -> SystemError? {
        guard let stream = self.process.stream(descriptor, "connectError") else { return .badDescriptor }
        let number = stream.takeError()
        return number == 0 ? nil : SystemError(number)
    }

    package func receive(_ descriptor: Descriptor, into buffer: inout MutableRawSpan) -> Int {
        guard let stream = self.process.stream(descriptor, "receive") else { return SystemError.badDescriptor.asResult }
        return stream.receive(into: &buffer)
    }

    package func send(_ descriptor: Descriptor, _ bytes: RawSpan) -> Int {
        guard let stream = self.process.stream(descriptor, "send") else { return SystemError.badDescriptor.asResult }
        return stream.send(bytes.byteCount) { queue, count in queue.append(bytes.extracting(0..<count)) }
    }

    package func send(_ descriptor: Descriptor, pieces: [[UInt8]], skipping: Int) -> Int {
        // More than any send buffer would be copied for nothing.
        let most = max(self.network.faults.sendBuffer.upperBound, 1)
        var joined: [UInt8] = []
        var skipped = skipping
        for piece in pieces where joined.count < most {
            joined += piece.dropFirst(skipped).prefix(most)
            skipped = max(0, skipped - piece.count)
        }
        return joined.withRawSpan { self.send(descriptor, $0) }
    }

    /// So little that short transfers pass too.
    package var passesFrom: Int { 64 }

    package func pass(_ source: Descriptor, to target: Descriptor, atMost count: Int) -> PassedBytes? {
        guard self.passed.isEmpty else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        let received = bytes.withMutableRawSpan { self.receive(source, into: &$0) }
        guard received > 0 else { return PassedBytes(received: received, sent: 0) }
        let sent = bytes.withRawSpan { self.send(target, $0.extracting(0..<received)) }
        self.passed = Array(bytes[max(0, sent)..<received])
        return PassedBytes(received: received, sent: sent)
    }

    package func takePassed(into buffer: inout MutableRawSpan) -> Int {
        let count = min(buffer.byteCount, self.passed.count)
        self.passed.withRawSpan { buffer.copy($0.extracting(0..<count), at: 0) }
        self.passed.removeFirst(count)
        return count
    }

    package func shutdownOutput(_ descriptor: Descriptor) -> SystemError? {
        guard let stream = self.process.stream(descriptor, "shutdownOutput") else { return .badDescriptor }
        return stream.shutdownOutput()
    }

    package func shutdownInput(_ descriptor: Descriptor) -> SystemError? {
        guard let stream = self.process.stream(descriptor, "shutdownInput") else { return .badDescriptor }
        return stream.shutdownInput()
    }

    package func close(_ descriptor: Descriptor) {
        self.process.release(descriptor, "close")?.close()
    }

    package func reset(_ descriptor: Descriptor) {
        switch self.process.release(descriptor, "reset") {
        case .stream(let stream): stream.reset()
        case .listener(let listener): listener.close()
        case nil: break
        }
    }

    package func removeSocketFile(_ path: String) {
        self.network.listeners.removeFile(path)
    }

    package func setMode(_ mode: UInt32, ofSocketFile path: String) -> SystemError? {
        self.network.listeners.setMode(mode, ofFileAt: path)
        return nil
    }

    package func localAddress(_ descriptor: Descriptor) -> SocketAddress? {
        switch self.process.socket(descriptor, "localAddress") {
        case .stream(let stream): stream.localAddress
        case .listener(let listener): listener.address
        case nil: nil
        }
    }

    package func peerAddress(_ descriptor: Descriptor) -> SocketAddress? {
        guard case .stream(let stream) = self.process.socket(descriptor, "peerAddress") else { return nil }
        return stream.family == .unix || stream.life == .established ? stream.remoteAddress : nil
    }

    package func apply(_ options: SocketOptions, to descriptor: Descriptor) -> SystemError? {
        switch self.process.socket(descriptor, "apply") {
        case .stream(let stream): self.apply(options, to: stream)
        case .listener(let listener): listener.inherited = options
        case nil: return .badDescriptor
        }
        return nil
    }

    package func setUserTimeout(_ timeout: Duration?, of descriptor: Descriptor) {
        guard let stream = self.process.stream(descriptor, "setUserTimeout"), stream.family == .tcp else { return }
        stream.options.userTimeout = timeout
        // A check that was planned may come too late now.
        stream.awaitsAcknowledgement = false
        stream.awaitAcknowledgement()
        stream.expectSilence()
    }

    package func setUnsentLimit(_ limit: Int, of descriptor: Descriptor) {
        self.process.stream(descriptor, "setUnsentLimit")?.unsentLimit = max(1, limit)
    }

    package func unacknowledgedBytes(of descriptor: Descriptor) -> Int? {
        self.process.stream(descriptor, "unacknowledgedBytes")?.usedOutput
    }

    package func outputHold(of descriptor: Descriptor) -> OutputHold? {
        guard let stream = self.process.stream(descriptor, "outputHold"), stream.family == .tcp, let peer = stream.peer
        else { return nil }
        // Segments leave at once here: what has not arrived is under way, or waits for the window.
        return OutputHold(
            unsent: stream.awaitsWindow ? stream.outbound.count : 0,
            window: max(0, peer.receiveCapacity - peer.received.count))
    }

    private func apply(_ options: SocketOptions, to stream: SimulatedStream) {
        stream.options = options
        stream.awaitAcknowledgement()
        stream.expectSilence()
    }

    /// Holds up what passes through this connection for `duration`: what its process sends, and what comes to it. `nil`
    /// is for ever. Kernel timeouts run meanwhile.
    package func stall(_ descriptor: Descriptor, for duration: Duration?, output: Bool = true, input: Bool = true) {
        guard let stream = self.process.stream(descriptor, "stall") else { return }
        let end = duration.map { self.network.now.advanced(by: $0) } ?? .distantFuture
        if output { stream.stall(until: end) }
        if input { stream.peer?.stall(until: end) }
    }
}
