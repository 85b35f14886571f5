import Foundation
import URLLoading

/// One request to a control plane.
package struct ControlRequest: Sendable, Equatable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"
        case delete = "DELETE"
    }

    /// One of the query; several may have one name.
    package struct Parameter: Sendable, Equatable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package let method: Method
    /// Percent-encoded, and what the server gave itself may have a query.
    package let path: String
    package var parameters: [Parameter]
    package var headers: [String: String] = [:]
    package var body: Data?
    /// How long nothing may come. Default: 30 s.
    package var patience: Duration = .seconds(30)

    package init(_ method: Method, _ path: String, _ parameters: [Parameter] = []) {
        self.method = method
        self.path = path
        self.parameters = parameters
    }

    /// With a body of JSON.
    package init(_ method: Method, _ path: String, _ parameters: [Parameter] = [], json body: some Encodable)
        throws(ControlFailure)
    {
        self.init(method, path, parameters)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            self.body = try encoder.encode(body)
        } catch {
            throw ControlFailure(.fault, "this cannot be written as JSON: \(error)")
        }
        self.headers["Content-Type"] = "application/json"
    }

    /// One path segment, percent-encoded except letters, digits and `-._~` (RFC 3986 §2.3).
    package static func segment(_ text: String) -> String {
        // A path is changed by segments of dots, however they are encoded.
        if text == "." || text == ".." { return String(repeating: "%2E", count: text.count) }
        return self.encoded(text)
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    private static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: self.unreserved) ?? ""
    }

    /// Path and query.
    package var target: String {
        guard !self.parameters.isEmpty else { return self.path }
        let query = self.parameters.map { "\(Self.encoded($0.name))=\(Self.encoded($0.value))" }
        return self.path + (self.path.contains("?") ? "&" : "?") + query.joined(separator: "&")
    }
}

/// Content of a response, read as it arrives. For one reader; releasing it before its end cancels the request.
package final class ControlBody: Sendable {
    private let reader: ByteReader
    private let address: ControlAddress

    init(_ bytes: URLSession.AsyncBytes, at address: ControlAddress) {
        self.reader = bytes.makeByteReader()
        self.address = address
    }

    /// The next bytes, at least one; `nil` at the end.
    package func next() async throws(ControlFailure) -> [UInt8]? {
        do {
            return try await self.reader.nextRun()
        } catch {
            throw ControlFailure(error, at: self.address)
        }
    }
}

/// Header fields by name, whatever their case.
package struct ControlHeaders: Sendable, Equatable {
    private var values: [String: String] = [:]

    package init(_ fields: [String: String] = [:]) {
        for (name, value) in fields { self.values[name.lowercased()] = value }
    }

    init(_ response: HTTPURLResponse) {
        for (name, value) in response.allHeaderFields { self.values["\(name)".lowercased()] = "\(value)" }
    }

    package subscript(name: String) -> String? { self.values[name.lowercased()] }

    /// Without its parameters, in small letters.
    package var mediaType: String? {
        self["Content-Type"]?.split(separator: ";").first?.trimmingCharacters(in: .whitespaces).lowercased()
    }

    /// Whether the content is JSON, be it a problem document.
    package var isJSON: Bool { self.mediaType == "application/json" || self.mediaType?.hasSuffix("+json") == true }
}

/// A response of the control plane with its whole content.
package struct ControlResponse: Sendable {
    package let status: Int
    package let headers: ControlHeaders
    /// As it came.
    package let body: Data

    package init(status: Int, headers: ControlHeaders, body: Data) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// - Throws: `ControlFailure` for content that does not say what it should.
    package func decoded<Model: Decodable>(_ type: Model.Type) throws(ControlFailure) -> Model {
        do {
            return try JSONDecoder().decode(type, from: self.body)
        } catch {
            throw ControlFailure(
                .nonsense, "the answer is not what was expected: \(ControlFailure.words(error))",
                remedy: "client and gateway may be of different versions: compare 'sluice --version' with GET /version")
        }
    }
}
