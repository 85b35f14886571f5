/// What the text of a value looks like: what schemas say of it.
package indirect enum ValueForm: Sendable, Hashable {
    /// - Parameter pattern: a regular expression (ECMA-262) that every right value matches.
    case text(example: String, pattern: String?)
    case integer(ClosedRange<Int>)
    /// Bytes, as digits alone or with a unit.
    case size(ClosedRange<Int>)
    /// Events a second.
    case rate(ClosedRange<Int>)
    case duration(ClosedRange<Duration>)
    case boolean
    case choice([String])
    /// The same, or the word `none`.
    case orNone(ValueForm)

    static func text(_ example: String) -> ValueForm { .text(example: example, pattern: nil) }
}
