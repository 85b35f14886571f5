import CommandLineText
import GatewayCore
import WebSocketProtocol

extension ValueSyntax<HTTPField> {
    /// `Name: value`; an empty value is a value.
    static var headerField: ValueSyntax {
        ValueSyntax { text throws(TextFault) in
            guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
                throw TextFault(expected: "a header as Name: value", remedy: "write it like 'Authorization: Bearer …'")
            }
            let isSpace = { (character: Character) in character == " " || character == "\t" }
            let padded = text[text.index(after: colon)...].drop(while: isSpace)
            let value = String(padded.reversed().drop(while: isSpace).reversed())
            let field = HTTPField(String(text[..<colon]), value)
            guard field.isWellFormed else {
                throw TextFault(
                    expected: "a header whose name is letters, digits and !#$%&'*+-.^_`|~, without control characters")
            }
            return field
        }
    }
}

extension ValueSyntax<CloseCode> {
    /// A code that a Close frame may carry.
    static var closeCode: ValueSyntax {
        ValueSyntax { text throws(TextFault) in
            guard let number = UInt16(text), CloseCode(rawValue: number).isAllowedOnWire else {
                throw TextFault(
                    expected: "a close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999",
                    remedy: "programs of one's own use 4000 to 4999")
            }
            return CloseCode(rawValue: number)
        }
    }
}

extension ValueSyntax<String> {
    static var closeReason: ValueSyntax {
        ValueSyntax { text throws(TextFault) in
            guard text.utf8.count <= ClosePayload.reasonLimit else {
                throw TextFault(expected: "a close reason of at most \(ClosePayload.reasonLimit) bytes")
            }
            return text
        }
    }
}
