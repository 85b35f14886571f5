/// A listening socket on one loop.
///
/// Takes at most `acceptsPerTurn` connections a turn, so that a burst of connections cannot starve those that
/// are there. When the process has no descriptor for another connection it stops accepting, and tries again every
/// `exhaustionPause` until it succeeds: the waiting ones stay in the kernel's queue.
package final class SocketListener {
    package static let acceptsPerTurn = 16
    /// Most that `acceptWaiting` takes.
    private static let acceptsBeforeClose = 4096
    private static let exhaustionPause = Duration.milliseconds(50)

    /// Reasons not to accept.
    private struct Pauses: OptionSet {
        let rawValue: UInt8

        static let owner = Pauses(rawValue: 1)
        /// No descriptor or memory was left for another connection.
        static let exhaustion = Pauses(rawValue: 2)
    }

    package let loop: Loop
    package let descriptor: Descriptor
    /// Where it listens, with the port that the system picked for port 0.
    package let address: SocketAddress
    private var owner: (any SocketListenerOwner)?
    /// `nil` once it is closed.
    private var token: UInt64?
    private let timer = LoopTimer()
    private var pauses: Pauses = []

    /// Opens `address` on `loop`.
    /// - Throws: `SystemError`, such as address in use.
    package convenience init(
        _ address: SocketAddress, options: ListenOptions = ListenOptions(), on loop: Loop,
        owner: any SocketListenerOwner
    ) throws(SystemError) {
        let descriptor = try loop.system.listen(address, options: options).get()
        try self.init(adopting: descriptor, on: loop, owner: owner)
    }

    /// Takes over a listening, non-blocking descriptor, such as one that the service manager passed.
    package init(adopting descriptor: Descriptor, on loop: Loop, owner: any SocketListenerOwner) throws(SystemError) {
        self.loop = loop
        self.descriptor = descriptor
        self.owner = owner
        self.address = loop.system.localAddress(descriptor) ?? .unix(path: "")
        switch loop.watch(descriptor, for: .readable, self) {
        case .success(let token): self.token = token
        case .failure(let error):
            loop.system.close(descriptor)
            throw error
        }
    }

    /// Leaves new connections in the kernel's queue until `resume`.
    package func pause() {
        self.loop.assertOnLoop()
        self.pauses.insert(.owner)
        self.updateInterest()
    }

    package func resume() {
        self.loop.assertOnLoop()
        self.pauses.remove(.owner)
        self.updateInterest()
    }

    /// Accepts the connections in the kernel's queue, which `close` would reset.
    package func acceptWaiting() {
        self.loop.assertOnLoop()
        for _ in 0..<Self.acceptsBeforeClose {
            guard self.token != nil, self.pauses.isEmpty, self.acceptOne() else { return }
        }
    }

    /// Stops listening. Newcomers are refused from now on; accepted connections are not touched.
    package func close() {
        self.loop.assertOnLoop()
        guard let token = self.token else { return }
        self.token = nil
        self.loop.disarm(self.timer)
        self.loop.unwatch(self.descriptor, token: token)
        self.loop.system.close(self.descriptor)
        self.owner = nil
    }

    private func updateInterest() {
        guard let token = self.token else { return }
        self.loop.system.rewatch(self.descriptor, for: self.pauses.isEmpty ? .readable : [], token: token)
    }

    /// - Returns: whether another may be waiting.
    private func acceptOne() -> Bool {
        switch self.loop.system.accept(self.descriptor) {
        case .success(var socket):
            self.endExhaustion()
            if !self.address.isWildcard { socket.local = self.address }
            self.owner?.accepted(socket, by: self)
            return true
        case .failure(.wouldBlock):
            self.endExhaustion()
            return false
        case .failure(let error) where error.isExhaustion:
            self.loop.arm(self.timer, after: Self.exhaustionPause, target: self)
            guard self.pauses.insert(.exhaustion).inserted else { return false }
            self.updateInterest()
            self.owner?.acceptingPaused(by: self, error)
            return false
        case .failure:
            // The peer is gone already (ECONNABORTED) or its network failed: errors of that connection, not of the
            // listener (accept(2)).
            self.endExhaustion()
            return true
        }
    }

    private func endExhaustion() {
        guard self.pauses.remove(.exhaustion) != nil else { return }
        self.updateInterest()
        self.owner?.acceptingResumed(by: self)
    }
}

extension SocketListener: Watchable {
    package func ready(_ events: Interest) {
        for _ in 0..<Self.acceptsPerTurn {
            guard self.token != nil, !self.pauses.contains(.owner), self.acceptOne() else { return }
        }
    }
}

extension SocketListener: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        guard !self.pauses.contains(.owner) else { return self.endExhaustion() }
        self.ready(.readable)
    }
}

/// Owner of a listener; held strongly until the listener is closed.
package protocol SocketListenerOwner: AnyObject {
    /// The owner now owns the descriptor.
    func accepted(_ socket: AcceptedSocket, by listener: SocketListener)
    /// No descriptor or memory for a new connection; accepting is tried again until `acceptingResumed`.
    func acceptingPaused(by listener: SocketListener, _ error: SystemError)
    func acceptingResumed(by listener: SocketListener)
}
