/// Why a run of the simulation came back.
package enum RunOutcome: Hashable, Sendable {
    /// What was waited for is so.
    case conditionMet
    /// Nothing is under way and no loop waits for a deadline: without a push from outside nothing will ever happen.
    case idle
    /// The time given is over.
    case timeOver
    /// A loop takes turn after turn without letting time pass: an event that it never acts on.
    case spinning
    /// As many steps were taken as this network may take: something goes on and on.
    case stepsUsedUp
}
