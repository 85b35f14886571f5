/// How the text of one option becomes a value.
package struct ValueSyntax<Value> {
    package let parse: (String) throws(TextFault) -> Value

    package init(parse: @escaping (String) throws(TextFault) -> Value) {
        self.parse = parse
    }

    /// The same, but the word `none` is `nil`.
    package var orNone: ValueSyntax<Value?> {
        ValueSyntax<Value?> { text throws(TextFault) in
            if text == "none" { return nil }
            do throws(TextFault) {
                return try self.parse(text)
            } catch {
                throw TextFault(expected: error.expected + ", or none", remedy: error.remedy)
            }
        }
    }
}
