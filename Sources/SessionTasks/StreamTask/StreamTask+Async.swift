import StreamTransport

/// The task from any thread.
extension StreamTask {
    /// Reads the next bytes of the stream.
    ///
    /// Cancelling the awaiting Swift task withdraws the read if it was not answered yet; bytes that had come for it go
    /// to the next read.
    /// - Parameters:
    ///   - minimum: the read waits until so many bytes are there, or the stream ends; 0 counts as 1.
    ///   - maximum: at least 1 and not below `minimum`.
    ///   - timeout: counted from now, without the time in suspension; `nil` waits without limit. When it passes, this read and all reads after it fail.
    /// - Throws: `TaskFailure`.
    public func read(minimum: Int = 1, maximum: Int, timeout: Duration? = nil) async throws(TaskFailure) -> Chunk {
        try await self.perform { task, completion in
            task.read(minimum: minimum, maximum: maximum, timeout: timeout, completion)
        } withdraw: { task, number in
            task.withdrawRead(number)
        }
    }

    /// Writes all of `bytes` behind what was written before; returns when the kernel has taken every byte, which does
    /// not mean that the peer has.
    ///
    /// Cancelling the awaiting Swift task withdraws the write if it had not begun; one that has begun runs to its end.
    /// - Throws: `TaskFailure`.
    public func write(_ bytes: [UInt8], timeout: Duration? = nil) async throws(TaskFailure) {
        try await self.perform { task, completion in
            task.write(bytes, timeout: timeout, completion)
        } withdraw: { task, number in
            task.withdrawWrite(number)
        }
    }

    /// Sends the end of the stream (FIN; under TLS close_notify) behind all writes so far. Reading goes on.
    public func closeWrite() {
        self.loop.execute { self.closeWriteOnLoop() }
    }

    /// Reads no more once the reads so far are answered. Writing goes on.
    public func closeRead() {
        self.loop.execute { self.closeReadOnLoop() }
    }

    /// Suspends the task; nests with `resume`.
    public func suspend() {
        self.loop.execute { self.suspendOnLoop() }
    }

    /// Starts the task, or undoes one `suspend`. More resumes than suspends do no harm.
    public func resume() {
        self.loop.execute { self.resumeOnLoop() }
    }

    /// Ends the task at once: the connection is reset and everything that waits fails with `.cancelled`.
    public func cancel() {
        self.record.state = .canceling
        self.loop.execute { self.cancelOnLoop() }
    }

    /// Starts TLS on the open connection when all reads and writes so far are done; what is asked for later waits for
    /// it, and fails if TLS does not begin.
    ///
    /// Bytes that came behind those that were read before are taken for the peer's handshake, never for plaintext.
    /// Cancelling the awaiting Swift task before TLS stands cancels the whole task: what was meant for TLS must not go
    /// out in the clear.
    /// - Throws: `TaskFailure.secureConnectionFailed`; the task is then over.
    package func startSecureConnection(_ settings: SecureSettings) async throws(TaskFailure) {
        try await self.perform { task, completion in
            task.startSecure(settings, completion)
        } withdraw: { task, number in
            task.withdrawSecuring(number)
        }
    }

    private func perform<R: Sendable>(
        _ begin: @escaping @Sendable (StreamTask, @escaping (Result<R, TaskFailure>) -> Void) -> UInt64,
        withdraw: @escaping @Sendable (StreamTask, UInt64) -> Void
    ) async throws(TaskFailure) -> R {
        let operation = AwaitedOperation()
        let result: Result<R, TaskFailure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.loop.execute {
                    guard operation.mayBegin() else { return continuation.resume(returning: .failure(.cancelled)) }
                    let number = begin(self) { continuation.resume(returning: $0) }
                    operation.began(number)
                }
            }
        } onCancel: {
            self.loop.execute {
                guard let number = operation.cancel() else { return }
                withdraw(self, number)
            }
        }
        return try result.get()
    }
}
