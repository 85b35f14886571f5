/// The functions that a file declares, found in its tokens.
enum Declarations {
    struct FunctionDeclaration: Equatable {
        let name: String
        let line: Int
        /// From the line of the name to the line of the closing brace.
        let lineCount: Int
    }

    /// Words that begin another declaration: a function followed by one before its brace has no body.
    private static let beginnings: Set<String> = [
        "func", "init", "var", "let", "case", "subscript", "associatedtype", "struct", "class", "enum", "protocol", "}",
    ]

    static func functions(in tokens: [Token]) -> [FunctionDeclaration] {
        tokens.indices.compactMap { index in
            let isFunction = self.isDeclaration(at: index, in: tokens, words: ["func"])
            guard isFunction || self.isInitializer(at: index, in: tokens) else { return nil }
            let name = isFunction ? tokens[index + 1] : tokens[index]
            guard let body = self.body(after: index + 1, in: tokens) else { return nil }
            return FunctionDeclaration(
                name: name.text, line: name.line, lineCount: tokens[body.upperBound].line - name.line + 1)
        }
    }

    private static func isDeclaration(at index: Int, in tokens: [Token], words: Set<String>) -> Bool {
        guard words.contains(tokens[index].text), index + 1 < tokens.count else { return false }
        // `class func` declares no class; `A.Type.enum` and `.class` name members; `func ==` has no word for a name.
        let isMember = index > 0 && [".", "`"].contains(tokens[index - 1].text)
        return !isMember && tokens[index + 1].isWord && !["func", "var", "let"].contains(tokens[index + 1].text)
    }

    private static func isInitializer(at index: Int, in tokens: [Token]) -> Bool {
        guard tokens[index].text == "init", index + 1 < tokens.count else { return false }
        return ["(", "<", "?"].contains(tokens[index + 1].text) && (index == 0 || tokens[index - 1].text != ".")
    }

    /// The indices of the braces around the body of the function whose signature begins at `start`.
    private static func body(after start: Int, in tokens: [Token]) -> ClosedRange<Int>? {
        var nesting = 0
        var opening: Int?
        for index in start..<tokens.count {
            switch tokens[index].text {
            case "(", "[": nesting += 1
            case ")", "]": nesting -= 1
            case "{" where nesting == 0:
                opening = index
            case let word where nesting == 0 && self.beginnings.contains(word):
                return nil
            default: continue
            }
            if opening != nil { break }
        }
        guard let opening else { return nil }
        var depth = 0
        for index in opening..<tokens.count {
            if tokens[index].text == "{" { depth += 1 }
            if tokens[index].text == "}" { depth -= 1 }
            if depth == 0 { return opening...index }
        }
        return nil
    }
}
