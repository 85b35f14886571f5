/// Where a task's connection is in its life, as it is shown to people.
package enum TaskStage: String, Sendable, Hashable, CaseIterable {
    /// Being connected, secured or upgraded.
    case opening
    case open
    /// One of the two ends has begun to end it.
    case closing
    case closed
}
