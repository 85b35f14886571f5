/// Why the deflater stopped.
package enum DeflateProgress: Equatable, Sendable {
    /// All input is taken and all that the flush asked for is written.
    case done
    /// The output has no room left: call again with the same flush and more room.
    case outputFull
}
