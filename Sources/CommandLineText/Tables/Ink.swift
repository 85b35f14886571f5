/// A colour of text on a terminal, as its SGR parameters (ECMA-48 §8.3.117).
package enum Ink: String, Sendable {
    case plain = ""
    case bold = "1"
    case faint = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"

    package func drawn(_ text: String) -> String {
        self == .plain || text.isEmpty ? text : "\u{1B}[\(self.rawValue)m\(text)\u{1B}[0m"
    }
}
