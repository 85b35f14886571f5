/// The course of one `connect`: what happens in, what to do out. Knows no socket, terminal or clock.
package struct Conversation: Sendable {
    /// What is different from one conversation to another.
    package struct Terms: Sendable, Equatable {
        /// Messages end with a closing handshake, a stream with one end in each direction.
        package var carriesMessages: Bool
        /// The first answer is the last one.
        package var wantsOneAnswer = false
        /// After the end of our input: how long nothing may come before we end it. `nil`: the peer ends it.
        package var patience: Duration?
        /// The peer's end of a stream is the end, whether or not there is more to send.
        package var endsWithPeer = false
        /// Whoever departs from a stream just leaves it: the connection belongs to somebody else and goes on. The end of
        /// our input still ends our direction.
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
        /// What came is written out; there will be no more of it.
        case outputEnded
        /// One whole answer was written out.
        case answered
        /// Nothing came for as long as `awaitSilence` said.
        case silent
        /// The user wants the end: a signal, Ctrl-C, or nobody reads what we write.
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
        /// Send our end behind what was sent: a Close frame, or the end of our direction.
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

    /// Whose patience ran out, or who asked, for the exit code.
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
            // The peer learns that there is no more to come, and may still answer. Who asked one question keeps the
            // way open until it is answered: many servers take the end for a farewell.
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
