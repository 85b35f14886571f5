/// Why compressed bytes could not be turned back. The inflater then needs a `reset()` before it is of use again.
package enum InflateFailure: Error, Equatable, Sendable {
    /// The bytes are not what the format allows; the reason is zlib's own text, for a log.
    case corrupt(reason: String)
    /// The stream was made with a preset dictionary, which nobody has agreed on with us.
    case dictionaryRequired
    /// There is more output than the limit given.
    case limitPassed
    /// No memory for the window.
    case outOfMemory
}
