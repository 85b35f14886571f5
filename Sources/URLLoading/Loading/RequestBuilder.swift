import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import WireText

/// Builds the header fields of a request: the request's own, the session's, cookies, and defaults.
struct RequestBuilder {
    private static let userAgent = "\(ProcessInfo.processInfo.processName) URLLoading/1"

    private let configuration: URLSessionConfiguration
    private let settings: RequestSettings
    /// Whether there is a body; a POST then gets a default Content-Type.
    var hasBody = false
    /// Whether the program's Content-Length is sent; otherwise the transport sends the length of the body.
    var keepsContentLength = false
    /// Conditions of a cache validation or a resumed download. They replace fields of the same name.
    var conditionalFields = HTTPFields()
    var authorization: String?
    /// Whether the request goes to the origin that the program named; no other gets the session's own `Authorization`.
    var isAtOriginalOrigin = true
    /// Used instead of those in the cookie storage.
    var cookies: [HTTPCookie]?

    init(_ configuration: URLSessionConfiguration, _ settings: RequestSettings) {
        self.configuration = configuration
        self.settings = settings
    }

    /// All fields in the order in which they are sent, except those that the transport sets.
    /// - Parameter defaults: the `defaultFields`, returned if nothing is to be added to them.
    func fields(of request: URLRequest, defaults: [FieldLine]? = nil) -> [FieldLine] {
        if let defaults, self.isAtOriginalOrigin, !self.hasBody, request.allHTTPHeaderFields == nil,
            self.conditionalFields.isEmpty, self.authorization == nil, self.cookieField(for: request) == nil
        {
            return defaults
        }
        var fields = (request.allHTTPHeaderFields ?? [:]).map { FieldLine($0.key, $0.value) }
        if !self.keepsContentLength { fields.removeAll { $0.name.matchesIgnoringCase("Content-Length") } }
        for (name, value) in self.sessionFields { Self.add(name, value, to: &fields) }
        for field in self.conditionalFields { Self.set(field.name.rawName, field.value, in: &fields) }
        if let authorization { Self.set("Authorization", authorization, in: &fields) }
        Self.add("Accept", "*/*", to: &fields)
        // A part of coded content cannot be decoded.
        let codings = Self.contains("Range", fields) ? "identity" : ContentDecoder.acceptEncodingValue
        Self.add("Accept-Encoding", codings, to: &fields)
        Self.add("Accept-Language", Self.language, to: &fields)
        Self.add("User-Agent", Self.userAgent, to: &fields)
        if self.hasBody, request.httpMethod == "POST" {
            Self.add("Content-Type", "application/x-www-form-urlencoded", to: &fields)
        }
        if !Self.contains("Cookie", fields), let cookie = self.cookieField(for: request) {
            fields.append(FieldLine("Cookie", cookie))
        }
        return fields.sorted { $0.name < $1.name }
    }

    /// The fields of a request without fields of its own, body and cookies.
    var defaultFields: [FieldLine] {
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.httpShouldHandleCookies = false
        return self.fields(of: request)
    }

    /// The request with the session's fields, as a `URLProtocol` gets it.
    func addingSessionFields(to request: URLRequest) -> URLRequest {
        var request = request
        for (name, value) in self.sessionFields where request.value(forHTTPHeaderField: name) == nil {
            request.setValue(value, forHTTPHeaderField: name)
        }
        return request
    }

    private static func contains(_ name: String, _ fields: [FieldLine]) -> Bool {
        fields.contains { $0.name.matchesIgnoringCase(name) }
    }

    /// Adds the field unless there is one of this name.
    private static func add(_ name: String, _ value: String, to fields: inout [FieldLine]) {
        if !self.contains(name, fields) { fields.append(FieldLine(name, value)) }
    }

    /// Replaces all fields of this name.
    private static func set(_ name: String, _ value: String, in fields: inout [FieldLine]) {
        fields.removeAll { $0.name.matchesIgnoringCase(name) }
        fields.append(FieldLine(name, value))
    }

    /// The user's preferred language (RFC 9110 §12.5.4).
    private static let language: String = {
        let first = Locale.preferredLanguages.first { $0.utf8.allSatisfy { $0 == 0x2D || $0 >= 0x30 && $0 < 0x7B } }
        return first ?? "en"
    }()

    private var sessionFields: [(String, String)] {
        (self.configuration.httpAdditionalHeaders ?? [:]).compactMap { key, value in
            guard let name = key.base as? String, let field = HTTPField.Name(name),
                !ReservedRequestFields.contains(field), "\(value)".isFieldValue,
                self.isAtOriginalOrigin || field != .authorization && field != .cookie
            else { return nil }
            return (name, "\(value)")
        }
    }

    /// Selects cookies for each request, also for one that follows a redirect.
    private func cookieField(for request: URLRequest) -> String? {
        if let cookies { return HTTPCookie.requestHeaderFields(with: cookies)["Cookie"] }
        guard request.httpShouldHandleCookies, self.settings.sendsCookies,
            let storage = self.settings.cookieStorage, let url = request.url
        else { return nil }
        let isNavigation = request.mainDocumentURL == request.url
        let cookies = storage.cookies(for: url, mainDocumentURL: request.mainDocumentURL, isNavigation: isNavigation)
        return HTTPCookie.requestHeaderFields(with: cookies)["Cookie"]
    }

    /// The cookies that a response sets.
    static func cookies(_ lines: [FieldLine], from url: URL) -> [HTTPCookie] {
        lines.filter { $0.isNamed("set-cookie") }
            .compactMap { SetCookieField($0.value) }.compactMap { HTTPCookie.cookie($0, from: url) }
    }

    /// Stores the cookies of a response, if the request, the session and the cookie policy allow it.
    static func storeCookies(
        _ lines: [FieldLine], from url: URL, request: URLRequest, configuration: URLSessionConfiguration
    ) {
        guard request.httpShouldHandleCookies, let storage = configuration.httpCookieStorage else { return }
        let cookies = self.cookies(lines, from: url)
        guard !cookies.isEmpty else { return }
        storage.setCookies(
            cookies, for: url, mainDocumentURL: request.mainDocumentURL, policy: configuration.httpCookieAcceptPolicy)
    }
}

extension HTTPFields {
    /// The fields of a request as the program set them.
    init(_ values: [String: String]?) {
        self.init()
        for (name, value) in (values ?? [:]).sorted(by: { $0.key < $1.key }) {
            guard let name = HTTPField.Name(name) else { continue }
            self.append(HTTPField(name: name, value: value))
        }
    }

    /// The values by name; those of repeated fields are joined.
    var values: [String: String] {
        var values: [String: String] = [:]
        for field in self { values[field.name.rawName] = self[field.name] }
        return values
    }

    /// The fields of a message as it was sent or received.
    init(_ lines: [FieldLine]) {
        self.init()
        for line in lines {
            guard let name = HTTPField.Name(line.name) else { continue }
            self.append(HTTPField(name: name, value: line.value))
        }
    }
}

extension HTTPSemantics.Origin {
    /// - Returns: `nil` for a URL without a host.
    init?(_ url: URL) {
        guard let scheme = url.scheme, let host = url.serverName else { return nil }
        self.init(scheme: scheme, host: host, port: url.port)
    }
}

extension HTTPTransport.ServerEndpoint {
    /// The server of `url`; `ws` is treated as `http`, and `wss` as `https`.
    /// - Returns: `nil` for another scheme, without a host, or with an invalid port.
    init?(_ url: URL) {
        guard let host = url.serverName else { return nil }
        let scheme: HTTPTransport.ServerEndpoint.Scheme
        switch url.scheme?.loweredASCII {
        case "http", "ws": scheme = .http
        case "https", "wss": scheme = .https
        default: return nil
        }
        guard let number = url.port else {
            if url.hasUnreadablePort { return nil }
            self.init(scheme, host: host)
            return
        }
        guard let port = UInt16(exactly: number), port > 0 else { return nil }
        self.init(scheme, host: host, port: port)
    }
}

extension URL {
    /// The host in lower case and without brackets, its labels as A-labels (RFC 5891), and the zone of an address without
    /// its escape; `nil` if there is none.
    var serverName: String? {
        guard let host = self.host(percentEncoded: false), !host.isEmpty else { return nil }
        guard host.utf8.allSatisfy({ $0 < 0x80 }) else {
            // Of a host with escapes, Foundation returns the letters.
            let named = URL(string: "http://\(host)/")?.host(percentEncoded: false) ?? host
            return named.utf8.allSatisfy { $0 < 0x80 } ? named.loweredASCII : self.escapedServerName
        }
        return host.utf8.contains(where: Self.needsEscape) ? self.escapedServerName : host.loweredASCII
    }

    /// A host with escapes, which no resolver or proxy finds.
    private var escapedServerName: String? { self.host(percentEncoded: true)?.loweredASCII }

    /// Whether a host has the ASCII character only in an escape.
    private static func needsEscape(_ character: UInt8) -> Bool {
        switch Unicode.Scalar(character) {
        case "\0"..." ", "/", "?", "#", "@", "[", "]", "\\", "\"", "<", ">", "^", "`", "{", "|", "}", "\u{7F}": true
        default: false
        }
    }

    /// Foundation finds no port in digits that exceed an `Int`.
    fileprivate var hasUnreadablePort: Bool {
        let authority = self.absoluteString.utf8.drop { $0 != UInt8(ascii: "/") }.dropFirst(2)
            .prefix { !"/?#".utf8.contains($0) }
        let digits = authority.reversed().prefix { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }.count
        return digits > 0 && authority.dropLast(digits).last == UInt8(ascii: ":")
    }

    /// Path and query, as in the request line.
    var requestTarget: String {
        let path = self.path(percentEncoded: true)
        let query = self.query(percentEncoded: true).map { "?\($0)" } ?? ""
        return (path.isEmpty ? "/" : path) + query
    }
}
