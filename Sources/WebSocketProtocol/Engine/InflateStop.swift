/// Why inflating stopped.
enum InflateStop: Equatable {
    /// Everything that the input gives was written.
    case needsInput
    /// There may be more to come, even without further input.
    case outputFull
    /// What was written until then is good.
    case corrupt
}
