import ByteKernels
import DequeModule
import StreamTransport
import WireText

/// The life of one HTTP/2 stream (RFC 9113 §5.1), as far as its exchange is concerned.
package enum HTTP2StreamState: Equatable {
    /// The request is not sent.
    case created
    /// The request is sent, and the response is incomplete.
    case open
    /// The whole response was received, and not all of it is delivered. The rest of the body may still be sent.
    case responded
    /// The stream is over, and not all that was received is delivered.
    case closed
    /// The exchange has ended, or continues elsewhere.
    case left

    package var receives: Bool { self == .open }
    package var sends: Bool { self == .open || self == .responded }
    package var isLeft: Bool { self == .left }

    package mutating func requestSent() {
        switch self {
        case .created: self = .open
        case .open, .responded, .closed, .left: break
        }
    }

    package enum InputEndedAction: Equatable {
        /// The end of the response is delivered after its content.
        case deliverEnd
        case ignore
    }

    /// The server has sent the whole response.
    package mutating func inputEnded() -> InputEndedAction {
        switch self {
        case .open:
            self = .responded
            return .deliverEnd
        case .created, .responded, .closed, .left: return .ignore
        }
    }

    package enum StreamClosedAction: Equatable {
        /// The response is incomplete. The state is `left`.
        case endExchange
        /// The response is incomplete. What was received is delivered, and then the exchange ends.
        case endExchangeAfterDelivery
        /// The response is complete: the server needs no more of the body (RFC 9113 §8.1).
        case awaitConsumer
        case ignore
    }

    /// The stream is closed: both sides ended it, one reset it, or the connection ended.
    /// - Parameter holdsResponse: whether a part of the response is not delivered.
    package mutating func streamClosed(holdsResponse: Bool) -> StreamClosedAction {
        switch self {
        case .created, .open:
            guard !holdsResponse else {
                self = .closed
                return .endExchangeAfterDelivery
            }
            self = .left
            return .endExchange
        case .responded, .closed:
            self = .closed
            return .awaitConsumer
        case .left: return .ignore
        }
    }

    package enum ExchangeLeftAction: Equatable {
        case reset
        /// The stream closes by itself.
        case awaitClose
        /// The stream was closed before, and held content.
        case free
        case ignore
    }

    /// The whole response is delivered, or the exchange has ended before.
    /// - Parameter isOutputFramed: whether the request is in frames to its end. Otherwise the rest may wait for a window
    ///   that never opens, and the stream would count against the server's limit for ever.
    package mutating func exchangeLeft(isOutputFramed: Bool) -> ExchangeLeftAction {
        let state = self
        self = .left
        switch state {
        case .open: return .reset
        case .responded: return isOutputFramed ? .awaitClose : .reset
        case .closed: return .free
        case .created, .left: return .ignore
        }
    }
}

/// Why a response ended before it was complete.
package struct ResponseLoss: Equatable {
    /// Of HTTP/2; `nil` if the server closed the connection, or it was lost.
    package var error: HTTP2Error?
    package var cause: TransportFailure?

    package init(_ error: HTTP2Error?, cause: TransportFailure? = nil) {
        self.error = error
        self.cause = cause
    }
}

/// The parts of a response that the consumer has not taken, in their order: at most one window of content, and heads up
/// to their limit.
package enum PendingResponse: Equatable {
    package enum Part: Equatable {
        case head(ResponseHead)
        case content([UInt8])
        case end(trailers: [FieldLine])
        /// The response is incomplete.
        case loss(ResponseLoss)
    }

    /// Parts that the consumer takes now.
    package enum Demand: Equatable {
        case none
        /// The end, without further content.
        case end
        case all
    }

    case waiting(Deque<Part>)
    /// The consumer is taking a part; the parts after it wait until it has returned.
    case delivering(Deque<Part>)

    package init() {
        self = .waiting([])
    }

    private var parts: Deque<Part> {
        switch self {
        case .waiting(let parts), .delivering(let parts): parts
        }
    }

    /// Whether a part that is received now can be delivered at once.
    package var isEmpty: Bool {
        if case .waiting(let parts) = self { parts.isEmpty } else { false }
    }

    package var count: Int { self.parts.count }

    package mutating func append(_ part: Part) {
        self.change { $0.append(part) }
    }

    /// Adjacent content becomes one part, so that many small frames do not cost an array each.
    package mutating func append(_ content: RawSpan) {
        var bytes: [UInt8] = []
        self.change { parts in
            if case .content(let last)? = parts.last {
                bytes = last
                parts.removeLast()
            }
        }
        bytes.append(content)
        self.append(.content(bytes))
    }

    private mutating func change(_ body: (inout Deque<Part>) -> Void) {
        switch self {
        case .waiting(var parts):
            self = .waiting([])
            body(&parts)
            self = .waiting(parts)
        case .delivering(var parts):
            self = .delivering([])
            body(&parts)
            self = .delivering(parts)
        }
    }

    /// - Returns: the next part, if the consumer takes it; call `partDelivered` after its delivery.
    package mutating func next(_ demand: Demand) -> Part? {
        guard case .waiting(var parts) = self, let part = parts.first else { return nil }
        switch (part, demand) {
        case (_, .none), (.head, .end), (.content, .end): return nil
        case (.end, .end), (.loss, .end), (_, .all):
            parts.removeFirst()
            self = .delivering(parts)
            return part
        }
    }

    package mutating func partDelivered() {
        switch self {
        case .delivering(let parts): self = .waiting(parts)
        case .waiting: break
        }
    }
}
