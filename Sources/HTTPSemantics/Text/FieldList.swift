/// The lists that field values are made of (RFC 9110 §5.6.1).
enum FieldList {
    /// Elements beyond this many are not read: no honest list comes near.
    static let limit = 256

    /// The elements of all the lines of one field, in order, without blanks around them; empty ones are left out.
    /// A comma in a quoted string separates nothing.
    static func elements(_ lines: [String]) -> [String] {
        var elements: [String] = []
        for line in lines {
            var scanner = FieldScanner(line)
            while !scanner.isAtEnd, elements.count < self.limit {
                let element = scanner.rawText(to: UInt8(ascii: ",")).trimmingBlanks
                if !element.isEmpty { elements.append(element) }
                _ = scanner.skip(UInt8(ascii: ","))
            }
        }
        return elements
    }
}
