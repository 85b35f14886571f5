/// A data message that came in one frame and stands whole in the buffer that was lent, unmasked in place; if text, it is
/// UTF-8.
package struct WholeMessage: Equatable, Sendable {
    package let kind: MessageKind
    package let payload: Range<Int>

    init(kind: MessageKind, payload: Range<Int>) {
        self.kind = kind
        self.payload = payload
    }
}
