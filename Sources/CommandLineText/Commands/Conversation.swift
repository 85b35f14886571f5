/// The course of one `connect`: what happens in, what to do out. Knows no socket, terminal or clock.
package struct Conversation: Sendable {
    /// Settings of one conversation.
    package struct Terms: Sendable, Equatable {
        /// Messages end with a closing handshake, a stream with one end in each direction.
        package var carriesMessages: Bool
        /// The first answer is the last one.
        package var wantsOneAnswer = false
        /// After the end of our input: how long nothing may come before we end it. `nil`: the peer ends it.
        package var patience: Duration?
        /// The peer's end of a stream is the end, whether or not there is more to send.
        package var endsWithPeer = false
        /// Detaching leaves the connection open: it belongs to another owner. The end of our input still ends our
        /// direction.
        package var staysWithoutUs = false

        package init(carriesMessages: Bool) {
            self.carriesMessages = carriesMessages
        }
    }

    package enum Event: Sendable, Hashable, CaseIterable {
        /// The connection is ready for what we have to say.
        case opened
        /// All of our input has been sent, or nothing of it can be sent any more.
        case inputEnded
        /// All received data is written; there will be no more.
        case outputEnded
        /// One whole answer was written out.
        case answered
        /// Nothing came for as long as `awaitSilence` said.
        case silent
        /// The user ends it: a signal, Ctrl-C, or output without a reader.
        case interrupted
        /// The connection is over.
        case closed
        /// The time that `awaitClosing` gave is over.
        case deadlinePassed
    }

    package enum Order: Sendable, Equatable {
        /// Start to read and to write.
        case begin
        case awaitSilence(Duration)
        /// Ends our direction after everything sent: a Close frame, or the end of our stream.
        case end
        /// Reading is done with, too: on a stream its end is not waited for.
        case leave
        /// Bound the time that the end may take.
        case awaitClosing
        /// End the connection at once.
        case abort
        /// It is over.
        case finish
    }

    private enum Phase {
        case opening, open, ending, finished
    }

    /// Ended by a timeout or by the user, for the exit code.
    package private(set) var wasInterrupted = false
    package private(set) var wasAborted = false
    /// `wantsOneAnswer`, and none came.
    package private(set) var lacksAnswer = false
    private let terms: Terms
    private var phase = Phase.opening
    private var inputIsOver = false
    private var outputIsOver = false
    private var connectionIsOver = false

    package init(_ terms: Terms) {
        self.terms = terms
        self.lacksAnswer = terms.wantsOneAnswer
    }

    package mutating func happened(_ event: Event) -> [Order] {
        guard self.phase != .finished else { return [] }
        switch event {
        case .opened: return self.opened()
        case .inputEnded: return self.inputEnded()
        case .outputEnded: return self.outputEnded()
        case .answered:
            guard self.terms.wantsOneAnswer, self.phase == .open else { return [] }
            self.lacksAnswer = false
            return self.depart()
        case .silent: return self.phase == .open ? self.depart() : []
        case .interrupted: return self.interrupted()
        case .closed:
            self.connectionIsOver = true
            return self.phase == .opening || self.outputIsOver ? self.finish() : []
        case .deadlinePassed:
            // The deadline is the peer's: what it said before its end is written out however slowly that goes.
            let isOurs = self.connectionIsOver && !self.wasInterrupted
            return self.phase == .ending && !isOurs ? self.abort() : []
        }
    }

    private mutating func opened() -> [Order] {
        guard self.phase == .opening else { return [] }
        self.phase = .open
        return [.begin]
    }

    private mutating func inputEnded() -> [Order] {
        guard self.phase == .open, !self.inputIsOver else { return [] }
        self.inputIsOver = true
        guard self.terms.carriesMessages else {
            if self.outputIsOver { return self.depart() }
            let wait = self.terms.patience.map { [Order.awaitSilence($0)] } ?? []
            // The peer learns that no more comes, and may still answer. A single question keeps the connection open
            // until it is answered: many servers treat our end as the end of the session.
            return self.terms.wantsOneAnswer ? wait : [.end] + wait
        }
        guard let patience = self.terms.patience else { return [] }
        return patience > .zero ? [.awaitSilence(patience)] : self.depart()
    }

    private mutating func outputEnded() -> [Order] {
        guard !self.outputIsOver, self.phase != .opening else { return [] }
        self.outputIsOver = true
        if self.connectionIsOver { return self.finish() }
        guard !self.terms.carriesMessages, self.phase == .open else { return [] }
        // The peer's end of a stream: what we still have to say is said first.
        return self.inputIsOver || self.terms.endsWithPeer ? self.depart() : []
    }

    /// We end it.
    private mutating func depart() -> [Order] {
        self.phase = .ending
        if self.terms.carriesMessages { return [.end, .awaitClosing] }
        return self.terms.staysWithoutUs ? [.leave, .awaitClosing] : [.end, .leave, .awaitClosing]
    }

    private mutating func interrupted() -> [Order] {
        self.wasInterrupted = true
        switch self.phase {
        case .opening, .ending: return self.abort()
        case .open: return self.depart()
        case .finished: return []
        }
    }

    private mutating func abort() -> [Order] {
        self.wasAborted = true
        self.phase = .finished
        return [.abort, .finish]
    }

    private mutating func finish() -> [Order] {
        self.phase = .finished
        return [.finish]
    }
}
