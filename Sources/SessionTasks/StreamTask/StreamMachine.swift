import StreamTransport

/// State of one stream task: phase, two directions, reading by its relay. Takes events and returns actions for the
/// task.
///
/// - The directions end apart from each other; a clean end of both ends the task once everything before is done.
/// - Received bytes can still be read after the transport has ended, if both sides had finished.
package struct StreamMachine: Equatable, Sendable {
    package enum Phase: Hashable, Sendable {
        case open
        /// The transport ended after both directions had closed cleanly: bytes received before can still be read.
        case outlivesTransport
        case ended
    }

    package enum Input: Hashable, Sendable {
        case open
        /// The peer has finished sending; bytes received before, and the end, are still to be read.
        case finished
        /// As `finished`, and the end was returned to a reader, or reading was closed.
        case consumed
        /// We closed reading before the peer finished.
        case refused
    }

    package enum Output: Hashable, Sendable {
        case open
        /// `closeWrite` was carried out.
        case finished
    }

    package enum RelayReading: Hashable, Sendable {
        case paused
        case wanted
    }

    package private(set) var phase = Phase.open
    package private(set) var input = Input.open
    package private(set) var output = Output.open
    package var relayReading = RelayReading.paused

    package init() {}

    package var hasEnded: Bool {
        if case .ended = self.phase { true } else { false }
    }

    package var outlivesTransport: Bool {
        if case .outlivesTransport = self.phase { true } else { false }
    }

    /// Whether the peer's end of input was seen.
    package var peerFinished: Bool {
        switch self.input {
        case .finished, .consumed: true
        case .open, .refused: false
        }
    }

    /// Whether no further read can give bytes.
    package var readingIsOver: Bool {
        switch self.input {
        case .consumed, .refused: true
        case .open, .finished: false
        }
    }

    package var writingIsOver: Bool {
        if case .finished = self.output { true } else { false }
    }

    // MARK: Events

    /// The peer has finished sending.
    package mutating func inputClosed() {
        switch self.input {
        case .open: self.input = .finished
        case .refused: self.input = .consumed
        case .finished, .consumed: break
        }
    }

    /// The end of input was returned to a reader, or `closeRead` is carried out.
    package mutating func inputConsumed() {
        switch self.input {
        case .open: self.input = .refused
        case .finished: self.input = .consumed
        case .consumed, .refused: break
        }
    }

    /// `closeWrite` is carried out.
    package mutating func outputClosed() {
        self.output = .finished
    }

    package enum TransportEndAction: Hashable, Sendable {
        /// Let the rest be read.
        case readOn
        case finish
    }

    package mutating func transportEnded(_ end: TransportEnd, isRelayed: Bool) -> TransportEndAction {
        guard case (.open, .finished, .finished) = (self.phase, self.input, self.output), !isRelayed else {
            return .finish
        }
        switch end {
        case .abandoned: return .finish
        // Under TLS our end is bytes, which the system of a peer that is gone answers with a reset: it takes back nothing
        // of what the peer sent before its own end.
        case .closed, .failed:
            self.phase = .outlivesTransport
            return .readOn
        }
    }

    /// - Returns: whether this is the end; otherwise the task had ended before.
    package mutating func end() -> Bool {
        guard !self.hasEnded else { return false }
        self.phase = .ended
        return true
    }
}
