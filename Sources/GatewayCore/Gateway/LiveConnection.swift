/// A connection that the gateway is responsible for, from its acceptance to its end. On its loop.
protocol LiveConnection: AnyObject {
    var passport: ConnectionPassport { get }
    /// Bytes taken from one peer that the kernel has not taken for the other: what its watermarks bound.
    var queuedBytes: Int { get }
    /// Asked to end when it is convenient: 1001 to WebSockets, nothing new to begin.
    func drain()
    /// Ends at once, with a reset where that is not a clean end.
    func abandon(_ party: TerminationParty, _ cause: TerminationCause)
}
