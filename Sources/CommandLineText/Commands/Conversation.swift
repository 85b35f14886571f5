/// State machine of one `connect`: takes events, returns actions. Has no socket, terminal or clock.
package struct Conversation: Sendable {
    /// Settings of one conversation.
    package struct Settings: Sendable, Equatable {
        /// WebSocket: closed by one closing handshake. A stream is closed in each direction.
        package var carriesMessages: Bool
        /// Closes after the first reply.
        package var expectsSingleReply = false
        /// Time without incoming data, after the end of input, until we close. `nil` waits for the peer to close.
        package var idleTimeout: Duration?
        /// Closes a stream when the peer half-closes it, even if input remains.
        package var endsWithPeer = false
        /// The connection belongs to a gateway: closing only detaches from it. The end of input still half-closes a stream.
        package var outlivesClient = false

        package init(carriesMessages: Bool) {
            self.carriesMessages = carriesMessages
        }
    }

    package enum Event: Sendable, Hashable, CaseIterable {
        /// The connection is open.
        case opened
        /// All input has been sent, or no more can be sent.
        case inputEnded
        /// All received data is written, and no more will arrive.
        case outputEnded
        /// One complete reply was written.
        case replied
        /// No data arrived for the duration of `awaitIdle`.
        case idle
        /// The user closes: a signal, Ctrl-C, or a closed output.
        case interrupted
        /// The connection is closed.
        case closed
        /// The deadline of `startCloseTimer` has passed.
        case deadlinePassed
    }

    package enum Action: Sendable, Equatable {
        /// Start reading and writing.
        case begin
        case awaitIdle(Duration)
        /// Send a Close frame, or half-close the stream, after all data sent before.
        case closeOutput
        /// Stop reading: a stream is closed without waiting for the peer's end.
        case stopReading
        /// Start the deadline for closing.
        case startCloseTimer
        /// Close the connection at once.
        case abort
        /// The session is finished.
        case finish
    }

    private enum Phase {
        case opening, open, ending, finished
    }

    /// The user closed the connection.
    package private(set) var wasInterrupted = false
    /// The connection was closed without waiting for the peer.
    package private(set) var wasAborted = false
    /// A reply is expected and was not received.
    package private(set) var isMissingReply = false
    private let settings: Settings
    private var phase = Phase.opening
    private var isInputOver = false
    private var isOutputOver = false
    private var isConnectionClosed = false

    package init(_ settings: Settings) {
        self.settings = settings
        self.isMissingReply = settings.expectsSingleReply
    }

    package mutating func handle(_ event: Event) -> [Action] {
        guard self.phase != .finished else { return [] }
        switch event {
        case .opened: return self.opened()
        case .inputEnded: return self.inputEnded()
        case .outputEnded: return self.outputEnded()
        case .replied:
            guard self.settings.expectsSingleReply, self.phase == .open else { return [] }
            self.isMissingReply = false
            return self.beginClosing()
        case .idle: return self.phase == .open ? self.beginClosing() : []
        case .interrupted: return self.interrupted()
        case .closed:
            self.isConnectionClosed = true
            return self.phase == .opening || self.isOutputOver ? self.finish() : []
        case .deadlinePassed:
            // The deadline bounds the peer only: data received before its end is written, however slow the output is.
            let isOurs = self.isConnectionClosed && !self.wasInterrupted
            return self.phase == .ending && !isOurs ? self.abort() : []
        }
    }

    private mutating func opened() -> [Action] {
        guard self.phase == .opening else { return [] }
        self.phase = .open
        return [.begin]
    }

    private mutating func inputEnded() -> [Action] {
        guard self.phase == .open, !self.isInputOver else { return [] }
        self.isInputOver = true
        guard self.settings.carriesMessages else {
            if self.isOutputOver { return self.beginClosing() }
            let wait = self.settings.idleTimeout.map { [Action.awaitIdle($0)] } ?? []
            // A half-close lets the peer still reply. With a single request the stream stays open until the reply: many
            // servers treat a half-close as the end of the session.
            return self.settings.expectsSingleReply ? wait : [.closeOutput] + wait
        }
        guard let idleTimeout = self.settings.idleTimeout else { return [] }
        return idleTimeout > .zero ? [.awaitIdle(idleTimeout)] : self.beginClosing()
    }

    private mutating func outputEnded() -> [Action] {
        guard !self.isOutputOver, self.phase != .opening else { return [] }
        self.isOutputOver = true
        if self.isConnectionClosed { return self.finish() }
        guard !self.settings.carriesMessages, self.phase == .open else { return [] }
        // The peer half-closed a stream: remaining input is sent first.
        return self.isInputOver || self.settings.endsWithPeer ? self.beginClosing() : []
    }

    /// Starts closing from our side.
    private mutating func beginClosing() -> [Action] {
        self.phase = .ending
        if self.settings.carriesMessages { return [.closeOutput, .startCloseTimer] }
        return self.settings.outlivesClient
            ? [.stopReading, .startCloseTimer] : [.closeOutput, .stopReading, .startCloseTimer]
    }

    private mutating func interrupted() -> [Action] {
        self.wasInterrupted = true
        switch self.phase {
        case .opening, .ending: return self.abort()
        case .open: return self.beginClosing()
        case .finished: return []
        }
    }

    private mutating func abort() -> [Action] {
        self.wasAborted = true
        self.phase = .finished
        return [.abort, .finish]
    }

    private mutating func finish() -> [Action] {
        self.phase = .finished
        return [.finish]
    }
}
