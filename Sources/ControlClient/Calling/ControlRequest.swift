import Foundation
import URLLoading
import WireText

/// One request to a control plane.
package struct ControlRequest: Sendable, Equatable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
        case put = "PUT"
        case patch = "PATCH"
        case delete = "DELETE"
    }

    /// One query parameter; names may repeat.
    package struct Parameter: Sendable, Equatable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package let method: Method
    /// Percent-encoded path. A path from the server, like that of the next page, may include a query.
    package let path: String
    package var parameters: [Parameter]
    package var headers: [String: String] = [:]
    package var body: Data?
    /// Timeout without incoming data. Default: 30 s.
    package var idleTimeout: Duration = .seconds(30)

    package init(_ method: Method, _ path: String, _ parameters: [Parameter] = []) {
        self.method = method
        self.path = path
        self.parameters = parameters
    }

    /// A request with a JSON body.
    package init(_ method: Method, _ path: String, _ parameters: [Parameter] = [], json body: some Encodable)
        throws(ControlFailure)
    {
        self.init(method, path, parameters)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            self.body = try encoder.encode(body)
        } catch {
            throw ControlFailure(.internalError, "cannot encode the request as JSON: \(error)")
        }
        self.headers["Content-Type"] = "application/json"
    }

    /// One path segment, percent-encoded except letters, digits and `-._~` (RFC 3986 §2.3).
    package static func segment(_ text: String) -> String {
        // Encoded explicitly: dot segments would be removed from the path (RFC 3986 §5.2.4).
        if text == "." || text == ".." { return String(repeating: "%2E", count: text.count) }
        return PercentCoding.encoded(text)
    }

    /// Path and query.
    package var target: String {
        guard !self.parameters.isEmpty else { return self.path }
        let query = self.parameters.map { "\(PercentCoding.encoded($0.name))=\(PercentCoding.encoded($0.value))" }
        return self.path + (self.path.contains("?") ? "&" : "?") + query.joined(separator: "&")
    }
}

/// Content of a response, read as it arrives by one reader. Releasing it before the end cancels the request.
package final class ControlBody: Sendable {
    private let reader: ByteReader
    private let address: ControlAddress

    init(_ bytes: URLSession.AsyncBytes, at address: ControlAddress) {
        self.reader = bytes.makeByteReader()
        self.address = address
    }

    /// - Returns: at least one byte; `nil` at the end.
    package func next() async throws(ControlFailure) -> [UInt8]? {
        do {
            return try await self.reader.nextRun()
        } catch {
            throw ControlFailure(error, at: self.address)
        }
    }
}

/// Header fields with case-insensitive names.
package struct ControlHeaders: Sendable, Equatable {
    private var values: [String: String] = [:]

    package init(_ fields: [String: String] = [:]) {
        for (name, value) in fields { self.values[name.lowercased()] = value }
    }

    init(_ response: HTTPURLResponse) {
        for (name, value) in response.allHeaderFields { self.values["\(name)".lowercased()] = "\(value)" }
    }

    package subscript(name: String) -> String? { self.values[name.lowercased()] }

    /// Media type in lower case, without parameters.
    package var mediaType: String? {
        self["Content-Type"]?.split(separator: ";").first?.trimmingBlanks.lowercased()
    }

    /// Whether the content is JSON, including problem documents.
    package var isJSON: Bool { self.mediaType == "application/json" || self.mediaType?.hasSuffix("+json") == true }
}

/// A complete response of the control plane.
package struct ControlResponse: Sendable {
    package let status: Int
    package let headers: ControlHeaders
    /// Body as received.
    package let body: Data

    /// - Throws: `ControlFailure` if the body is not a valid `Model`.
    package func decoded<Model: Decodable>(_ type: Model.Type) throws(ControlFailure) -> Model {
        do {
            return try JSONDecoder().decode(type, from: self.body)
        } catch {
            throw ControlFailure(
                .invalidResponse, "unexpected response: \(ControlFailure.describe(error))",
                remedy: "client and gateway may have different versions: compare 'sluice --version' with GET /version")
        }
    }
}
