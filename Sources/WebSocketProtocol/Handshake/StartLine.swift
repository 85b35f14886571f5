import ByteKernels

/// The first line of a head, whichever way it goes.
enum StartLine: Equatable {
    case request(method: String, target: String, version: HTTPVersion)
    case response(version: HTTPVersion, status: Int, reason: String)

    /// Gives `nil` for a line that is none.
    typealias Reader = @Sendable (RawSpan) -> StartLine?

    /// request-line = method SP request-target SP HTTP-version (RFC 9112 §3), with exactly these two spaces.
    static let readRequest: Reader = { line in
        guard let first = Self.space(in: line, from: 0), let second = Self.space(in: line, from: first + 1),
            first > 0, second > first + 1, let version = HTTPVersion(line.extracting((second + 1)..<line.byteCount))
        else { return nil }
        for offset in 0..<first where !line[byte: offset].isTokenCharacter { return nil }
        for offset in (first + 1)..<second where !line[byte: offset].isVisibleASCII { return nil }
        return .request(
            method: String(tolerant: line.extracting(0..<first)),
            target: String(tolerant: line.extracting((first + 1)..<second)), version: version)
    }

    /// status-line = HTTP-version SP status-code SP [ reason-phrase ] (RFC 9112 §4). Many servers leave out the last
    /// space together with the phrase, which does no harm.
    static let readResponse: Reader = { line in
        let parts = Self.split(String(tolerant: line), maximum: 2)
        guard parts.count >= 2, let version = HTTPVersion(parts[0].utf8.span.bytes), parts[1].utf8.count == 3,
            let status = Int(parts[1]), (100...999).contains(status)
        else { return nil }
        return .response(version: version, status: status, reason: parts.count == 3 ? String(parts[2]) : "")
    }

    private static func space(in line: RawSpan, from start: Int) -> Int? {
        for offset in start..<max(start, line.byteCount) where line[byte: offset] == 0x20 { return offset }
        return nil
    }

    private static func split(_ line: String, maximum: Int) -> [Substring] {
        line.utf8.split(separator: 0x20, maxSplits: maximum, omittingEmptySubsequences: false).map { Substring($0) }
    }
}
