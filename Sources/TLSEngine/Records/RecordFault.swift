/// Why records cannot go on.
package enum RecordFault: Error, Equatable, Sendable {
    case peer(RecordViolation)
    /// OpenSSL's cryptography could not do its work: memory.
    case engine
}
