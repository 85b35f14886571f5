/// State of one socket connection: its input, its output, its end. Takes events and returns actions for the socket.
///
/// - The directions end apart from each other: FIN ends the input, a FIN of ours the output.
/// - A write that meets a reset breaks the output only: bytes that the peer sent before are still read, then the reset
///   is reported. While reading is paused they wait for it if the consumer wants them, and the peer had finished.
/// - The first end wins; it is reported once.
///
/// Its code matches patterns where `==` would do: the compiler then sees that no access to the state overlaps another, and
/// leaves the checks of that out of every read and write.
package struct ConnectionMachine: Equatable, Sendable {
    package enum Input: Hashable, Sendable {
        /// - Parameter isBulk: the last read was a long one; the next likely is too.
        case open(isBulk: Bool)
        /// FIN was read.
        case finished
    }

    package enum Output: Hashable, Sendable {
        case open
        /// FIN follows the queued bytes.
        case finishing
        case finished
        /// A write met a reset: the peer accepts nothing more.
        case broken
    }

    package enum Phase: Hashable, Sendable {
        case open
        /// Everything is sent, then what still arrives is thrown away until the peer's FIN or the linger deadline.
        case closing(linger: Duration)
        /// The descriptor is closed; the end is to be reported to the consumer.
        case ended(TransportEnd)
        case reported
        case detached
    }

    package private(set) var phase = Phase.open
    package private(set) var output = Output.open
    package private(set) var input = Input.open(isBulk: false)
    package internal(set) var gate: InputGate
    private var hasReportedBrokenOutput = false

    package init(paused: Bool) {
        self.gate = paused ? .paused : .open
    }

    // MARK: What the state permits

    /// Whether there is a descriptor.
    package var isLive: Bool {
        switch self.phase {
        case .open, .closing: true
        case .ended, .reported, .detached: false
        }
    }

    package var isOpen: Bool {
        if case .open = self.phase { true } else { false }
    }

    /// Whether the input is read and discarded.
    package var isClosing: Bool {
        if case .closing = self.phase { true } else { false }
    }

    package var acceptsOutput: Bool {
        if case .open = self.output { self.isOpen } else { false }
    }

    private var inputIsOpen: Bool {
        if case .open = self.input { true } else { false }
    }

    /// Whether the consumer may still get input, now or once it resumes reading.
    private var mayOfferInput: Bool { self.isOpen && self.inputIsOpen && !self.gate.isClosed }

    /// Whether what arrives is read.
    package var isReading: Bool {
        self.inputIsOpen && (self.gate.isReading || self.isClosing)
    }

    /// Whether input may be read now: kept bytes are offered before, in a turn of their own.
    package var admitsInput: Bool { self.gate.admitsInput || self.isClosing }

    package var expectsBulk: Bool {
        if case .open(isBulk: true) = self.input { true } else { false }
    }
}

/// Input.
extension ConnectionMachine {
    package mutating func bytesReceived(isBulk: Bool) {
        if self.inputIsOpen { self.input = .open(isBulk: isBulk) }
    }

    package enum InputEndAction: Hashable, Sendable {
        case ignore
        case reportInputClosed
        case end(TransportEnd)
    }

    /// FIN was read.
    /// - Parameter outputIsSent: no bytes are queued.
    package mutating func inputFinished(outputIsSent: Bool) -> InputEndAction {
        guard self.isLive else { return .ignore }
        self.input = .finished
        if self.output == .broken { return .end(.failed(.reset)) }
        return self.isOpen
            ? .reportInputClosed : self.closingEnd(outputIsSent: outputIsSent).map { .end($0) } ?? .ignore
    }

    package enum HangUpAction: Hashable, Sendable {
        /// Stop watching until reading resumes: epoll would report the hang-up in every wait.
        case unwatch
        case ignore
        case end(TransportEnd)
    }

    /// Both directions ended while nothing is read. A failure ends the connection now, a clean end once it is read.
    /// - Parameters:
    ///   - error: the socket's pending error, if any.
    ///   - keepsInput: input is left unread, and the consumer wants it although the output is broken.
    package func hungUp(outputIsSent: Bool, error: SystemError?, keepsInput: Bool = false) -> HangUpAction {
        guard self.isLive else { return .ignore }
        if self.output == .broken { return keepsInput && self.mayOfferInput ? .unwatch : .end(.failed(.reset)) }
        if let error {
            // The peer finished before it reset: all that it sent can still be read. The next write reports the reset.
            if error != .brokenPipe || !self.mayOfferInput {
                return Self.end(readFailure: error).map { .end($0) } ?? .ignore
            }
        }
        guard self.isClosing else { return .unwatch }
        return self.closingEnd(outputIsSent: outputIsSent).map { .end($0) } ?? .ignore
    }

    /// - Returns: the end that a failed read means; `nil` if it may be repeated.
    package static func end(readFailure error: SystemError) -> TransportEnd? {
        switch error {
        case .wouldBlock, .interrupted: nil
        case .reset, .brokenPipe: .failed(.reset)
        case .timedOut: .failed(.peerUnresponsive)
        case .hostUnreachable, .networkUnreachable: .failed(.unreachable(error))
        default: .failed(.system(error))
        }
    }

    /// - Returns: whether this was new.
    package mutating func shutdownInput() -> Bool {
        guard self.isOpen, self.inputIsOpen, !self.gate.isClosed else { return false }
        self.gate.close()
        return true
    }
}

/// Output.
extension ConnectionMachine {
    package enum SendFailureAction: Hashable, Sendable {
        /// Send again when the socket is writable.
        case retry
        /// Drop queued output and continue reading: the reset is reported after the bytes received before it.
        case readOn
        case end(TransportEnd)
    }

    /// - Parameter keepsInput: input is left unread, and the consumer wants it although the output is broken.
    package mutating func sendFailed(_ error: SystemError, keepsInput: Bool = false) -> SendFailureAction {
        switch error {
        case .wouldBlock, .interrupted, .noBuffers: return .retry
        case .reset, .brokenPipe:
            self.output = .broken
            // As for a hang-up: behind the peer's FIN all that it sent can still be read.
            let waitsForReader = error == .brokenPipe && keepsInput && self.mayOfferInput
            return self.isReading || waitsForReader ? .readOn : .end(.failed(.reset))
        case .timedOut: return .end(.failed(.peerUnresponsive))
        default: return .end(.failed(.system(error)))
        }
    }

    /// - Returns: whether to notify the consumer that the output is broken; once.
    package mutating func takeBrokenOutput() -> Bool {
        guard self.isOpen, self.output == .broken, !self.hasReportedBrokenOutput else { return false }
        self.hasReportedBrokenOutput = true
        return true
    }

    /// - Returns: whether this was new.
    package mutating func shutdownOutput() -> Bool {
        guard self.acceptsOutput else { return false }
        self.output = .finishing
        return true
    }

    /// - Returns: whether FIN is to be sent now.
    package mutating func finishOutput(outputIsSent: Bool) -> Bool {
        guard self.output == .finishing, self.isLive, outputIsSent else { return false }
        self.output = .finished
        return true
    }
}

/// The end.
extension ConnectionMachine {
    /// - Returns: whether this was new; `lingerPassed` is then to be called after `linger`.
    package mutating func close(linger: Duration) -> Bool {
        guard self.isOpen else { return false }
        self.phase = .closing(linger: linger)
        self.gate.close()
        if self.output == .open { self.output = .finishing }
        return true
    }

    /// - Returns: the end of a connection that is closing, if it is reached.
    package func closingEnd(outputIsSent: Bool) -> TransportEnd? {
        guard self.isClosing, outputIsSent else { return nil }
        switch self.output {
        case .open, .finishing: return nil
        case .finished: return self.inputIsOpen ? nil : .closed
        case .broken: return .closed
        }
    }

    package func lingerPassed(outputIsSent: Bool) -> TransportEnd? {
        guard self.isClosing else { return nil }
        // Unsent bytes mean that the peer did not get everything: not a clean end.
        return outputIsSent ? .closed : .abandoned
    }

    /// - Returns: whether this is the end; otherwise the connection ended before.
    package mutating func end(_ end: TransportEnd) -> Bool {
        guard self.isLive else { return false }
        self.phase = .ended(end)
        self.gate.close()
        return true
    }

    /// - Returns: the end, once, if it is reached.
    package mutating func takeEnd() -> TransportEnd? {
        guard case .ended(let end) = self.phase else { return nil }
        self.phase = .reported
        return end
    }

    /// - Returns: whether the descriptor may be handed over. Not from inside an offer: which bytes are left is not
    ///   known then.
    package mutating func detach(outputIsSent: Bool) -> Bool {
        guard self.isOpen, self.output == .open, outputIsSent, !self.gate.isOffering else { return false }
        self.phase = .detached
        self.gate.close()
        return true
    }

    /// The socket cannot be watched: there never was a connection, and nothing is reported.
    package mutating func openFailed() {
        self.phase = .reported
        self.gate.close()
    }
}
