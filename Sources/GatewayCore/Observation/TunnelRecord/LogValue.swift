/// The value of one field of a log line.
package enum LogValue: Hashable, Sendable {
    case text(String)
    case count(UInt64)
    /// Written in seconds, with three decimals.
    case duration(Duration)
}
