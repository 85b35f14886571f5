/// State of one WebSocket task: phase and closing handshake, reasons to pause reading, state of the output. Takes
/// events and returns actions for the task.
///
/// - One Close frame is sent and one accepted; whichever comes second ends the connection (RFC 6455 §1.4).
/// - Data may be sent until our Close is sent, even after the peer's Close is received.
/// - The reasons to pause reading are independent; input is read while there is none.
package struct WebSocketMachine: Equatable, Sendable {
    package enum Phase: Hashable, Sendable {
        /// Not connected, or the opening handshake is not complete.
        case opening
        case open
        /// Our Close frame is sent; the peer's is not received yet.
        case closing
        /// The peer's Close frame is received; ours is not sent yet.
        case closeReceived
        /// Both Close frames are through: only the transport's end is missing.
        case draining
        case ended
    }

    /// The frame or message that the last written bytes belong to.
    package enum Output: Hashable, Sendable {
        case betweenMessages
        /// A message went out in part: until its rest has, none of another kind may begin.
        case insideMessage
        /// A forwarded frame went out in part: until its rest has, whatever else were written would become its payload.
        case insideFrame
    }

    /// Reasons not to read.
    package struct ReadingPauses: OptionSet, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The relay's other side, or the receiver of messages, is behind.
        package static let consumer = ReadingPauses(rawValue: 1)
        /// The peer does not read our answers.
        package static let output = ReadingPauses(rawValue: 2)
        /// The connection's end was received, and waits for the receiver of a message before it.
        package static let deferredEnd = ReadingPauses(rawValue: 4)
        package static let suspension = ReadingPauses(rawValue: 8)
    }

    package private(set) var phase = Phase.opening
    package private(set) var output = Output.betweenMessages
    package private(set) var pauses: ReadingPauses

    /// - Parameter startsPaused: the consumer is not ready yet.
    package init(startsPaused: Bool) {
        self.pauses = startsPaused ? .consumer : []
    }

    // MARK: What the state permits

    package var isOpening: Bool {
        if case .opening = self.phase { true } else { false }
    }

    package var isOpen: Bool {
        if case .open = self.phase { true } else { false }
    }

    package var isClosing: Bool {
        if case .closing = self.phase { true } else { false }
    }

    package var hasEnded: Bool {
        if case .ended = self.phase { true } else { false }
    }

    package var isSuspended: Bool { self.pauses.contains(.suspension) }
    package var hasDeferredEnd: Bool { self.pauses.contains(.deferredEnd) }

    /// Whether the next frame is taken from the input.
    package var acceptsInput: Bool {
        switch self.phase {
        case .open, .closing: self.pauses.isEmpty
        case .opening, .closeReceived, .draining, .ended: false
        }
    }

    /// Whether input is discarded: after a Close frame, or after the connection failed, it means nothing (RFC 6455
    /// §5.5.1, §7.1.7).
    package var discardsInput: Bool {
        switch self.phase {
        case .closeReceived, .draining, .ended: true
        case .opening, .open, .closing: false
        }
    }

    /// Whether data frames may be sent.
    package var acceptsData: Bool {
        switch self.phase {
        case .open, .closeReceived: true
        case .opening, .closing, .draining, .ended: false
        }
    }

    /// Whether messages may be queued for sending.
    package var acceptsMessages: Bool {
        switch self.phase {
        case .opening, .open: true
        case .closing, .closeReceived, .draining, .ended: false
        }
    }

    /// Whether queued messages may begin, as far as the transport accepts more.
    package var startsMessages: Bool {
        guard case .betweenMessages = self.output else { return false }
        return !self.isSuspended
    }

    package var isInsideFrame: Bool {
        if case .insideFrame = self.output { true } else { false }
    }

    /// Whether the peer's answer to our Close, or the end of its connection, is overdue some time after the last
    /// progress.
    package var awaitsPeerEnd: Bool {
        switch self.phase {
        case .closing, .draining: true
        case .opening, .open, .closeReceived, .ended: false
        }
    }

    /// Whether an end of the transport now is a failure.
    package var isCutOffByEnd: Bool {
        switch self.phase {
        case .opening, .open, .closing: true
        case .closeReceived, .draining, .ended: false
        }
    }
}

/// Reading.
extension WebSocketMachine {
    package enum ReadingAction: Hashable, Sendable {
        case ignore
        case pause
        case resume
    }

    /// Action for the transport's reading.
    package var reading: ReadingAction {
        switch self.phase {
        case .open, .closing: self.pauses.isEmpty ? .resume : .pause
        case .opening, .closeReceived, .draining, .ended: .ignore
        }
    }

    package mutating func consumerPaused() {
        self.pauses.insert(.consumer)
    }

    package mutating func consumerResumed() {
        self.pauses.remove(.consumer)
    }

    /// The peer does not read our answers.
    /// - Returns: whether this was new.
    package mutating func outputFellBehind() -> Bool {
        self.pauses.insert(.output).inserted
    }

    package mutating func outputCaughtUp() {
        self.pauses.remove(.output)
    }

    package enum SuspendAction: Hashable, Sendable {
        case ignore
        case pauseReading
        /// The opening handshake restarts after the suspension.
        case leaveOpening
    }

    /// A task that is closing is not suspended.
    package mutating func suspend() -> SuspendAction {
        guard !self.isSuspended else { return .ignore }
        switch self.phase {
        case .opening:
            self.pauses.insert(.suspension)
            return .leaveOpening
        case .open:
            self.pauses.insert(.suspension)
            return .pauseReading
        case .closing, .closeReceived, .draining, .ended: return .ignore
        }
    }

    package enum SuspensionEndAction: Hashable, Sendable {
        case ignore
        /// The task runs again.
        case run
        /// As `run`; reading and sending resume, and keep-alive restarts.
        case resume
        /// As `run`; sending resumes, and the receiver of the last message has its time again.
        case waitForReceivers
    }

    package mutating func endSuspension() -> SuspensionEndAction {
        guard self.pauses.remove(.suspension) != nil else { return .ignore }
        guard self.isOpen else { return .run }
        return self.hasDeferredEnd ? .waitForReceivers : .resume
    }
}

/// Output.
extension WebSocketMachine {
    /// A data frame of our own went out.
    /// - Returns: whether messages that waited for the end of this one may follow.
    package mutating func pieceSent(endsMessage: Bool) -> Bool {
        switch self.output {
        case .betweenMessages:
            if !endsMessage { self.output = .insideMessage }
            return false
        case .insideMessage:
            if endsMessage { self.output = .betweenMessages }
            return endsMessage
        case .insideFrame: return false
        }
    }

    /// Bytes of the other WebSocket's frames went out.
    package mutating func framesSent(endsFrame: Bool, endsMessage: Bool) {
        self.output = endsMessage ? .betweenMessages : endsFrame ? .insideMessage : .insideFrame
    }
}

/// Opening and closing.
extension WebSocketMachine {
    package mutating func openingCompleted() {
        if self.isOpening { self.phase = .open }
    }

    /// Our Close frame is to go out.
    /// - Parameter isRelayed: the relay resumes reading itself when its other side has caught up.
    /// - Returns: whether it may.
    package mutating func beginClose(isRelayed: Bool) -> Bool {
        guard self.isOpen else { return false }
        self.phase = .closing
        if !isRelayed { self.pauses.remove(.consumer) }
        self.pauses.remove(.output)
        return true
    }

    package enum CloseReceivedAction: Hashable, Sendable {
        case ignore
        /// Answer with `closeAnswered`, now or later.
        case answer
        /// This is the answer to ours: end the transport.
        case endTransport
    }

    /// The peer's Close frame takes effect.
    package mutating func closeReceived() -> CloseReceivedAction {
        switch self.phase {
        case .open:
            self.phase = .closeReceived
            return .answer
        case .closing:
            self.phase = .draining
            return .endTransport
        case .opening, .closeReceived, .draining, .ended: return .ignore
        }
    }

    /// - Returns: whether our Close frame is to go out, and the transport to end.
    package mutating func closeAnswered() -> Bool {
        guard case .closeReceived = self.phase else { return false }
        self.phase = .draining
        return true
    }

    /// The connection's end was received while the receiver of a message before it is behind.
    /// - Returns: whether the end is to wait for `takeDeferredEnd`.
    package mutating func deferEnd() -> Bool {
        guard self.isOpen else { return false }
        self.pauses.insert(.deferredEnd)
        return true
    }

    /// - Returns: whether an end is deferred, which takes effect now.
    package mutating func takeDeferredEnd() -> Bool {
        self.pauses.remove(.deferredEnd) != nil
    }
}

/// Ends.
extension WebSocketMachine {
    package enum FailureAction: Hashable, Sendable {
        /// Inside a frame a Close would be payload.
        case reset
        /// Send a Close frame and end the transport.
        case sendClose
        case endTransport
    }

    /// The connection fails by our decision.
    package var failureAction: FailureAction {
        if self.isInsideFrame { return .reset }
        return self.isOpen ? .sendClose : .endTransport
    }

    package enum InputEndAction: Hashable, Sendable {
        case ignore
        case interruptOpening
        /// No Close frame was received.
        case failConnection
        /// Our Close, and output before it, may still wait for the kernel.
        case endTransport
    }

    package var inputEndAction: InputEndAction {
        switch self.phase {
        case .opening: .interruptOpening
        case .open, .closing: .failConnection
        case .closeReceived, .draining: .endTransport
        case .ended: .ignore
        }
    }

    package enum TimerAction: Hashable, Sendable {
        case ignore
        case timeOutOpening
        case keepAlive
        case processDeferredEnd
        /// A relay that is behind does not let the peer come to its Close.
        case waitOn
        /// The peer did not answer our Close.
        case giveUp
        /// Close can never go out.
        case reset
        case endTransport
    }

    package func timerFired(isRelayed: Bool) -> TimerAction {
        switch self.phase {
        case .opening: .timeOutOpening
        case .open: self.hasDeferredEnd ? .processDeferredEnd : .keepAlive
        case .closing: isRelayed && self.pauses.contains(.consumer) ? .waitOn : .giveUp
        // How long the peer's Close may wait for its answer is the relay's to bound.
        case .closeReceived: .ignore
        case .draining: self.isInsideFrame ? .reset : .endTransport
        case .ended: .ignore
        }
    }

    /// - Returns: whether this is the end; otherwise the task had ended before.
    package mutating func end() -> Bool {
        guard !self.hasEnded else { return false }
        self.phase = .ended
        self.pauses = []
        return true
    }
}
