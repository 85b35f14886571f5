/// Parses the requests of one connection strictly.
struct SimulatedRequestReader {
    struct Request {
        var method = ""
        var task = 0
        /// 0, or 1 after a redirect.
        var step = 0
        var host = ""
        var authorization: String?
        var cookies: [String] = []
        var body: [UInt8] = []
        var length: Int?
        var isChunked = false
        /// As a proxy gets it.
        var isAbsolute = false
    }

    enum Event {
        case head(Request)
        case complete(Request)
        case malformed(String)
    }

    private var input: [UInt8] = []
    private var request: Request?

    /// Whether a request has begun and is not complete.
    var isWithinRequest: Bool { self.request != nil || !self.input.isEmpty }
    var body: [UInt8] { self.request?.body ?? [] }

    /// The bytes received after the last complete request.
    var rest: String { String(decoding: self.input, as: UTF8.self) }

    mutating func feed(_ bytes: [UInt8]) { self.input += bytes }

    mutating func next() -> Event? {
        guard var request = self.request else { return self.readHead() }
        if request.isChunked {
            guard let end = self.readChunks(into: &request) else {
                self.request = request
                return nil
            }
            guard end else { return .malformed("chunk") }
        } else {
            let missing = (request.length ?? 0) - request.body.count
            request.body += self.input.prefix(missing)
            self.input.removeFirst(min(missing, self.input.count))
            self.request = request
            guard request.body.count == request.length ?? 0 else { return nil }
        }
        self.request = nil
        return .complete(request)
    }

    private mutating func readHead() -> Event? {
        guard let end = Self.end(of: [13, 10, 13, 10], in: self.input) else { return nil }
        let lines = String(decoding: self.input[..<end], as: UTF8.self).split(separator: "\r\n")
        self.input.removeFirst(end)
        guard let request = Request(lines) else { return .malformed("\(lines)") }
        self.request = request
        return .head(request)
    }

    /// - Returns: whether the chunks were well-formed to their end; `nil` until more has arrived.
    private mutating func readChunks(into request: inout Request) -> Bool? {
        while let lineEnd = Self.end(of: [13, 10], in: self.input) {
            let line = String(decoding: self.input[..<(lineEnd - 2)], as: UTF8.self)
            guard let size = Int(line, radix: 16) else { return false }
            guard self.input.count >= lineEnd + size + 2 else { return nil }
            request.body += self.input[lineEnd..<(lineEnd + size)]
            guard self.input[lineEnd + size] == 13 else { return false }
            self.input.removeFirst(lineEnd + size + 2)
            if size == 0 { return true }
        }
        return nil
    }

    private static func end(of mark: [UInt8], in bytes: [UInt8]) -> Int? {
        guard bytes.count >= mark.count else { return nil }
        return (0...(bytes.count - mark.count)).first { bytes[$0] == mark[0] && bytes[$0...].starts(with: mark) }
            .map { $0 + mark.count }
    }
}

extension SimulatedRequestReader.Request {
    /// - Parameter lines: `METHOD /TASK/STEP HTTP/1.1` and the fields.
    init?(_ lines: [Substring]) {
        guard let words = lines.first?.split(separator: " "), words.count == 3, words[2] == "HTTP/1.1" else {
            return nil
        }
        var fields: [(String, String)] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { return nil }
            fields.append((line[..<colon].lowercased(), String(line[line.index(after: colon)...].drop { $0 == " " })))
        }
        self.init(method: String(words[0]), target: String(words[1]), fields)
    }

    /// - Parameters:
    ///   - target: `/TASK/STEP`, or an absolute URL with that path.
    ///   - fields: with names in lowercase.
    init?(method: String, target: String, _ fields: [(String, String)]) {
        let absolute = target.wholeMatch(of: /http:\/\/(one|two)\.test:[0-9]+(\/.*)/)
        let path = (absolute?.2 ?? target[...]).split(separator: "/").compactMap { Int($0) }
        guard path.count == 2 else { return nil }
        self.isAbsolute = absolute != nil
        (self.method, self.task, self.step) = (method, path[0], path[1])
        for (name, value) in fields {
            switch name {
            case "host", ":authority": self.host = String(value.prefix { $0 != ":" })
            case "authorization": self.authorization = value
            case "cookie": self.cookies += value.split(separator: "; ").map(String.init)
            case "content-length": self.length = Int(value)
            case "transfer-encoding": self.isChunked = value == "chunked"
            default: break
            }
        }
    }
}
