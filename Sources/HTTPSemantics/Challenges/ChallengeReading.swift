/// Reads one line of challenges from its beginning to its end.
struct ChallengeReading {
    private var scanner: FieldScanner
    private var finished: [Challenge] = []
    private var schemeName: String?
    private var token68: String?
    private var parameters: [Challenge.Parameter] = []

    init(_ line: String) {
        self.scanner = FieldScanner(line)
    }

    mutating func challenges(limit: Int) -> [Challenge] {
        while !self.scanner.isAtEnd, self.finished.count < limit {
            self.scanner.skipBlanks()
            if self.scanner.skip(UInt8(ascii: ",")) { continue }
            self.readElement()
            // Whatever is left of this element means nothing.
            self.scanner.skip(to: UInt8(ascii: ","))
        }
        self.finish()
        return Array(self.finished.prefix(max(0, limit)))
    }

    private mutating func readElement() {
        if self.readParameter() { return }
        guard let scheme = self.scanner.token() else { return }
        self.finish()
        self.schemeName = scheme
        guard self.scanner.current?.isBlank == true else { return }
        self.scanner.skipBlanks()
        if self.readParameter() { return }
        self.readToken68()
    }

    /// `name = value`, where a token and one equals sign stand, and something behind it.
    private mutating func readParameter() -> Bool {
        let start = self.scanner.position
        guard let name = self.scanner.token() else { return false }
        self.scanner.skipBlanks()
        guard self.scanner.skip(UInt8(ascii: "=")) else {
            self.scanner.rewind(to: start)
            return false
        }
        self.scanner.skipBlanks()
        if let value = self.scanner.quotedString() {
            self.add(name, value)
            return true
        }
        // A bare value may hold what a token may not: nonces come unquoted, with slashes and equals signs.
        let value = self.scanner.text { !$0.isBlank && $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "\"") }
        if value.isEmpty || value.utf8.allSatisfy({ $0 == UInt8(ascii: "=") }) {
            self.scanner.rewind(to: start)
            return false
        }
        self.add(name, value)
        return true
    }

    private mutating func readToken68() {
        let text = self.scanner.text { byte in
            byte.isLetter || byte.isDigit || "-._~+/=".utf8.contains(byte)
        }
        self.scanner.skipBlanks()
        guard !text.isEmpty, self.scanner.isAtEnd || self.scanner.current == UInt8(ascii: ",") else { return }
        self.token68 = text
    }

    private mutating func add(_ name: String, _ value: String) {
        guard self.schemeName != nil, self.parameters.count < Challenge.parameterLimit else { return }
        self.parameters.append(Challenge.Parameter(name: name, value: value))
    }

    private mutating func finish() {
        if let schemeName = self.schemeName {
            self.finished.append(
                Challenge(schemeName: schemeName, token68: self.token68, parameters: self.parameters))
        }
        self.schemeName = nil
        self.token68 = nil
        self.parameters = []
    }
}
