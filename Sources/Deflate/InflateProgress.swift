/// Why the inflater stopped.
package enum InflateProgress: Equatable, Sendable {
    /// All input is used up and everything that it gives is written.
    case needsInput
    /// The output has no room left; there may be more to come, even without further input.
    case outputFull
    /// The last block of the stream is done; input behind it is untouched. See `Inflater.continuePastEnd()`.
    case streamEnd
}
