import StreamTransport

/// The task's verbs, on the loop; the public asynchronous ones come down to these.
extension StreamTask {
    /// - Returns: a number by which the read can be withdrawn.
    @discardableResult
    package func read(
        minimum: Int, maximum: Int, timeout: Duration?, _ completion: @escaping ReadQueue.Completion
    ) -> UInt64 {
        let number = self.nextNumber()
        guard maximum > 0, minimum >= 0, minimum <= maximum else {
            completion(.failure(.usage("a read needs 0 <= minimum <= maximum and a maximum of at least 1")))
            return number
        }
        self.queues.reads.append(
            .read(
                .init(
                    number: number, minimum: max(1, minimum), maximum: maximum,
                    deadline: self.deadline(after: timeout), completion: completion)))
        self.advanceOrFail()
        return number
    }

    @discardableResult
    package func write(_ bytes: [UInt8], timeout: Duration?, _ completion: @escaping SendQueue.Completion) -> UInt64 {
        let number = self.nextNumber()
        self.queues.sends.append(
            .send(
                .init(
                    number: number, bytes: bytes, deadline: self.deadline(after: timeout), completion: completion)))
        self.advanceOrFail()
        return number
    }

    package func withdrawRead(_ number: UInt64) {
        self.queues.reads.withdraw(number)?(.failure(.cancelled))
        self.advanceOrFail()
    }

    package func withdrawWrite(_ number: UInt64) {
        self.queues.sends.withdraw(number)?(.failure(.cancelled))
        self.advanceOrFail()
    }

    package func closeReadOnLoop() {
        self.queues.reads.append(.close)
        self.advanceOrFail()
    }

    package func closeWriteOnLoop() {
        self.queues.sends.append(.close)
        self.advanceOrFail()
    }

    /// Ends the task in order: writes so far go out, what still comes is not read.
    package func closeOnLoop() {
        guard !self.ended else { return }
        guard self.transport != nil || self.outlivesTransport else { return self.cancelOnLoop() }
        self.finish(nil)
    }

    /// Reads up to `limit` bytes that nobody has asked for yet, and tells when a direction is shut in order: reading by
    /// either end, be there bytes that nobody has read, and writing by ours. Each at most once for each end.
    package func watchDirections(
        readAhead limit: Int, inputClosed: @escaping () -> Void, outputClosed: @escaping () -> Void
    ) {
        self.queues.readAhead = limit
        self.queues.inputObserver = inputClosed
        self.queues.outputObserver = outputClosed
        if self.inputWasClosed { inputClosed() }
        self.advance()
    }

    /// Starts TLS in the role of the settings' context when everything asked for before is done; what is asked for
    /// later waits, and fails if TLS does not begin.
    /// - Returns: a number by which it can be withdrawn.
    @discardableResult
    package func startSecure(
        _ settings: SecureSettings, _ completion: @escaping (Result<Void, TaskFailure>) -> Void
    ) -> UInt64 {
        guard !self.ended else {
            completion(.failure(self.record.read { $0.failure } ?? .ended))
            return 0
        }
        return self.place(.secure(settings, completion))
    }

    /// Gives up a start of TLS that has not come to its end, and with it the whole task: what stands behind it was not
    /// meant for the open.
    package func withdrawSecuring(_ number: UInt64) {
        guard self.queuesIfMade?.barriers[number] != nil || self.securing?.number == number else { return }
        self.cancelOnLoop()
    }

    /// Hands the connection over when everything asked for before is done; the task is complete then.
    package func captureStreams(_ completion: @escaping (Result<CapturedStreams, TaskFailure>) -> Void) {
        guard !self.ended else { return completion(.failure(self.record.read { $0.failure } ?? .ended)) }
        self.place(.capture(completion))
    }

    @discardableResult
    private func place(_ barrier: Barrier) -> UInt64 {
        let number = self.nextNumber()
        self.queues.barriers[number] = barrier
        self.queues.reads.append(.barrier(number: number))
        self.queues.sends.append(.barrier(number: number))
        self.advance()
        return number
    }

    /// After the end the queues still answer, at once.
    private func advanceOrFail() {
        if self.ended {
            self.runReads()
            self.runSends()
        } else {
            self.advance()
        }
    }

    // MARK: Behind a barrier

    func secure(
        _ settings: SecureSettings, behind barrier: UInt64, _ completion: @escaping (Result<Void, TaskFailure>) -> Void
    ) {
        guard let plain = self.transport, !(plain is SecureTransport) else {
            completion(.failure(.usage("the connection is secure already")))
            return self.liftBarrier(barrier)
        }
        guard !self.readingIsOver, !self.writingIsOver else {
            return self.failBehind(barrier, .directionClosed) { completion(.failure(.directionClosed)) }
        }
        self.securing = SecuringStep(number: barrier, completion: completion)
        self.transport = nil
        let secure = SecureTransport.upgrade(plain, settings: settings, received: self.queues.reads.surrenderGathered())
        {
            result in
            self.secured(result, behind: barrier)
        }
        self.securing?.transport = secure
    }

    private func secured(_ result: Result<SecureTransport, TransportFailure>, behind barrier: UInt64) {
        guard !self.ended else {
            if case .success(let transport) = result { transport.reset() }
            return
        }
        let completion = self.securing?.completion
        self.securing = nil
        switch result {
        case .success(let transport):
            self.transportOpened(transport)
            completion?(.success(()))
            self.liftBarrier(barrier)
        case .failure(let failure):
            completion?(.failure(TaskFailure(failure)))
            self.finish(TaskFailure(failure))
        }
    }

    func capture(_ completion: @escaping (Result<CapturedStreams, TaskFailure>) -> Void) {
        guard let transport = self.transport else { return completion(.failure(.ended)) }
        // Until the new owner is in place nothing may be read, and what this task left is offered to it first.
        transport.pauseReading()
        transport.consumer = nil
        self.transport = nil
        let captured = CapturedStreams(
            transport: transport, unread: self.queues.reads.surrenderGathered(), inputClosed: self.inputWasClosed)
        self.finish(nil)
        completion(.success(captured))
    }
}
