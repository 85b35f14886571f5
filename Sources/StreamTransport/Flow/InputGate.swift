/// Decides when a transport reads, when it offers bytes to its consumer, and when it offers again what the consumer left.
///
/// Holds no bytes: the transport keeps what the consumer leaves, says in its events whether it keeps any, and does what
/// the action says. Every event is permitted in every state.
package enum InputGate: Sendable, Hashable, CaseIterable {
    /// Input is read and offered after bytes that the consumer left unread.
    case open
    /// The consumer is reading the offered bytes; how many it leaves is not known yet.
    case offering
    /// As `offering`, and reading was paused meanwhile.
    case offeringPaused
    /// As `offering`, and reading was paused and resumed meanwhile, perhaps by a new consumer, which gets the unread bytes.
    case offeringResumed
    /// The bytes left are offered in the next turn, which is requested. Nothing is read before.
    case awaitingTurn
    /// Nothing is read or offered.
    case paused
    /// As `paused`, and a turn was requested before.
    case pausedAwaitingTurn
    /// The consumer never gets input again.
    case closed

    /// Whether readiness of the input is of interest.
    package var isReading: Bool {
        switch self {
        case .open, .offering, .offeringResumed, .awaitingTurn: true
        case .offeringPaused, .paused, .pausedAwaitingTurn, .closed: false
        }
    }

    /// Whether new input may be read and offered now.
    package var admitsInput: Bool {
        if case .open = self { true } else { false }
    }

    package var isClosed: Bool {
        if case .closed = self { true } else { false }
    }

    /// Whether the consumer is looking at bytes.
    package var isOffering: Bool {
        switch self {
        case .offering, .offeringPaused, .offeringResumed: true
        case .open, .awaitingTurn, .paused, .pausedAwaitingTurn, .closed: false
        }
    }

    // MARK: Requests

    package mutating func pause() {
        switch self {
        case .open: self = .paused
        case .offering, .offeringResumed: self = .offeringPaused
        case .awaitingTurn: self = .pausedAwaitingTurn
        case .offeringPaused, .paused, .pausedAwaitingTurn, .closed: break
        }
    }

    package enum ResumeAction: Hashable, Sendable {
        case ignore
        /// Watch the input again.
        case read
        /// Watch the input again, and call `turnBegan` in the next turn.
        case readAndRequestTurn
    }

    /// - Parameter keepsBytes: the transport keeps bytes that the consumer left.
    package mutating func resume(keepsBytes: Bool) -> ResumeAction {
        switch self {
        case .paused:
            self = keepsBytes ? .awaitingTurn : .open
            return keepsBytes ? .readAndRequestTurn : .read
        case .pausedAwaitingTurn:
            self = .awaitingTurn
            return .read
        case .offeringPaused:
            self = .offeringResumed
            return .read
        case .open, .offering, .offeringResumed, .awaitingTurn, .closed: return .ignore
        }
    }

    /// The transport drops what it keeps, and keeps no more.
    package mutating func close() {
        self = .closed
    }

    // MARK: Offers

    /// New input is offered, if `admitsInput`.
    package mutating func offerBegan() {
        if self.admitsInput { self = .offering }
    }

    package enum TurnAction: Hashable, Sendable {
        case ignore
        /// Offer the kept bytes, then call `offerEnded`.
        case offerKept
    }

    /// The requested turn begins.
    package mutating func turnBegan() -> TurnAction {
        switch self {
        case .awaitingTurn:
            self = .offering
            return .offerKept
        case .pausedAwaitingTurn:
            self = .paused
            return .ignore
        case .open, .offering, .offeringPaused, .offeringResumed, .paused, .closed: return .ignore
        }
    }

    package enum OfferAction: Hashable, Sendable {
        /// Keep the unread bytes, if any, until more input comes or reading resumes.
        case keep
        /// Keep the unread bytes, and call `turnBegan` in the next turn.
        case keepAndRequestTurn
        /// Drop the unread bytes.
        case drop
    }

    /// The consumer has returned.
    /// - Parameters:
    ///   - leavesBytes: it did not use everything.
    ///   - budgetIsSpent: its share of the turn is used up, which is why it left them.
    package mutating func offerEnded(leavesBytes: Bool, budgetIsSpent: Bool) -> OfferAction {
        switch self {
        case .offering: return self.reopen(offersAgain: leavesBytes && budgetIsSpent)
        case .offeringResumed: return self.reopen(offersAgain: leavesBytes)
        case .offeringPaused:
            self = .paused
            return .keep
        case .open, .awaitingTurn, .paused, .pausedAwaitingTurn: return .keep
        case .closed: return .drop
        }
    }

    private mutating func reopen(offersAgain: Bool) -> OfferAction {
        self = offersAgain ? .awaitingTurn : .open
        return offersAgain ? .keepAndRequestTurn : .keep
    }
}
