import ArgumentParser

/// How the process ends, by sysexits(3).
enum ExitStatus {
    /// What was typed cannot be understood.
    static let usage = ExitCode(64)
    /// The target was required and cannot be reached.
    static let unavailable = ExitCode(69)
    /// A fault of ours.
    static let internalFault = ExitCode(70)
    /// The system refused a socket, a thread or the like at start.
    static let systemFault = ExitCode(71)
    /// The configuration, or a file that it names, is not right.
    static let configuration = ExitCode(78)
}
