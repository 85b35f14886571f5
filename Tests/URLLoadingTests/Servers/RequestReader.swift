/// Splits the bytes of one connection into requests, with a small reader independent of the library's.
struct RequestReader {
    enum Event {
        case head(ReceivedRequest)
        case whole(ReceivedRequest)
        case garbage
    }

    private enum Place {
        case head
        case body(left: Int)
        case chunkSize
        case chunk(left: Int)
        case chunkEnd
        case trailers
    }

    /// The number of body bytes that are kept; further bytes are only counted.
    static let keptBody = 1 << 20

    private var bytes: ArraySlice<UInt8> = []
    private var place = Place.head
    private var request = ReceivedRequest()

    mutating func add(_ more: some Collection<UInt8>) { self.bytes += more }

    /// - Returns: `nil` until more has come.
    mutating func next() -> Event? {
        while true {
            switch self.place {
            case .head:
                // The first byte of a TLS handshake.
                if self.bytes.first == 0x16 { return .garbage }
                guard let end = self.headEnd() else { return nil }
                return self.readHead(Array(self.bytes[self.bytes.startIndex..<end]))
            case .body(let left):
                let taken = self.take(left)
                if taken == left { return self.finish() }
                self.place = .body(left: left - taken)
                return nil
            case .chunkSize:
                guard let line = self.line() else { return nil }
                guard let size = Int(line.prefix { $0 != ";" }, radix: 16) else { return .garbage }
                self.place = size == 0 ? .trailers : .chunk(left: size)
            case .chunk(let left):
                let taken = self.take(left)
                guard taken == left else {
                    self.place = .chunk(left: left - taken)
                    return nil
                }
                self.place = .chunkEnd
            case .chunkEnd:
                guard let line = self.line() else { return nil }
                guard line.isEmpty else { return .garbage }
                self.place = .chunkSize
            case .trailers:
                guard let line = self.line() else { return nil }
                if line.isEmpty { return self.finish() }
                self.request.trailers.append(Self.field(line))
            }
        }
    }

    private mutating func finish() -> Event {
        defer { self.request = ReceivedRequest() }
        self.place = .head
        return .whole(self.request)
    }

    private func headEnd() -> Int? {
        guard self.bytes.count >= 4 else { return nil }
        for index in self.bytes.indices.dropLast(3) where self.bytes[index] == 13 {
            if self.bytes[index...].starts(with: [13, 10, 13, 10]) { return index + 4 }
        }
        return nil
    }

    private mutating func readHead(_ head: [UInt8]) -> Event {
        self.bytes = self.bytes.dropFirst(head.count)
        var lines = String(decoding: head, as: UTF8.self).components(by: "\r\n").filter { !$0.isEmpty }
        let words = lines.isEmpty ? [] : lines.removeFirst().split(separator: " ").map(String.init)
        guard words.count == 3 else { return .garbage }
        self.request.method = words[0]
        self.request.target = words[1]
        self.request.fields = lines.map(Self.field)
        if self.request["Transfer-Encoding"]?.lowercased() == "chunked" {
            self.place = .chunkSize
        } else {
            self.place = .body(left: self.request["Content-Length"].flatMap { Int($0) } ?? 0)
        }
        return .head(self.request)
    }

    private static func field(_ line: String) -> (name: String, value: String) {
        let name = line.prefix { $0 != ":" }
        var value = line.dropFirst(name.count + 1)
        while value.first == " " { value.removeFirst() }
        return (String(name), String(value))
    }

    private mutating func take(_ count: Int) -> Int {
        let piece = self.bytes.prefix(count)
        self.request.bodyCount += piece.count
        self.request.body += piece.prefix(max(0, Self.keptBody - self.request.body.count))
        self.bytes = self.bytes.dropFirst(piece.count)
        return piece.count
    }

    private mutating func line() -> String? {
        guard let end = self.bytes.firstIndex(of: 10), end > self.bytes.startIndex else { return nil }
        let line = self.bytes[self.bytes.startIndex..<(end - 1)]
        self.bytes = self.bytes[(end + 1)...]
        return String(decoding: line, as: UTF8.self)
    }
}

extension String {
    fileprivate func components(by separator: String) -> [String] {
        self.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
    }
}
