/// One stroke on a terminal's keyboard.
package enum Key: Sendable, Hashable {
    /// A Unicode scalar that is no control character.
    case character(Unicode.Scalar)
    /// Control with a letter, in lower case, without those that have a name of their own here.
    case control(Character)
    case enter, tab, backspace, delete
    case left, right, wordLeft, wordRight, home, end
    case up, down
    /// A sequence that means nothing here.
    case unknown
}
