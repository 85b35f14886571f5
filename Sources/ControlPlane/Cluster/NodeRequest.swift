import GatewayConfiguration
import HTTPTypes
import HummingbirdCore
import NIOCore
import WireText

/// A request of the REST interface that a node sends to another: one line of JSON, then the body.
package struct NodeRequest: Sendable, Equatable {
    /// Header fields that operations read; others are not forwarded.
    static let forwardedFields: [HTTPField.Name] = [.contentType, .contentEncoding, .idempotencyKey, .prefer]
    /// Longest path with its query, in bytes, as in requests of clients.
    private static let targetLimit = 16 << 10

    package var method: String
    /// Path and query.
    package var target: String
    /// By name, in lower case.
    package var fields: [String: String] = [:]
    /// The name of the caller, whom the sending node has authenticated.
    package var caller: String
    package var scopes: [String]
    package var body: [UInt8] = []

    package init(_ method: String, _ target: String, caller: String, scopes: [String]) {
        self.method = method
        self.target = target
        self.caller = caller
        self.scopes = scopes
    }

    init(_ method: HTTPRequest.Method, _ target: String, by caller: Caller) {
        self.init(
            method.rawValue, target, caller: caller.name, scopes: caller.scopes.map(\.rawValue).sorted())
    }

    /// The request of a call, without its body.
    init(_ call: ControlCall, target: String? = nil) {
        self.init(call.request.method, target ?? call.request.head.path ?? "/", by: call.caller)
        for name in Self.forwardedFields {
            self.fields[name.canonicalName] = call.request.headers[name]
        }
    }

    package var encoded: [UInt8] {
        var text = JSONText(capacity: 256 + self.body.count)
        text.beginObject()
        text.member("method", self.method)
        text.member("target", self.target)
        text.member("fields", self.fields)
        text.member("caller", self.caller)
        text.key("scopes")
        text.beginArray()
        for scope in self.scopes { text.string(scope) }
        text.endArray()
        text.endObject()
        return text.bytes + [0x0A] + self.body
    }

    /// - Returns: `nil` for bytes that are no request.
    package init?(_ bytes: [UInt8]) {
        guard let (head, body) = Self.parts(of: bytes) else { return nil }
        var request = NodeRequest("", "", caller: "", scopes: [])
        let isDocument = JSONReader.readDocument(head) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "method": request.method = try value.readString()
            case "target": request.target = try value.readString()
            case "caller": request.caller = try value.readString()
            case "fields": request.fields = try Self.fields(&value)
            case "scopes": request.scopes = try value.readStrings()
            default: try value.skipValue()
            }
        }
        guard isDocument, request.target.hasPrefix("/"), request.target.utf8.count <= Self.targetLimit,
            request.target.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !request.caller.isEmpty
        else { return nil }
        request.body = body
        self = request
    }

    fileprivate static func parts(of bytes: [UInt8]) -> (head: [UInt8], body: [UInt8])? {
        guard let mark = bytes.firstIndex(of: 0x0A) else { return nil }
        return (Array(bytes[..<mark]), Array(bytes[(mark + 1)...]))
    }

    fileprivate static func fields(_ reader: inout JSONReader) throws(JSONSyntaxError) -> [String: String] {
        var fields: [String: String] = [:]
        try reader.readObject { (name, value) throws(JSONSyntaxError) in fields[name.text] = try value.readString() }
        return fields
    }

    /// The request as operations see it.
    /// - Returns: `nil` for a method or a field that HTTP does not allow.
    var request: Request? {
        guard let method = HTTPRequest.Method(self.method) else { return nil }
        var headers = HTTPFields()
        for (name, value) in self.fields {
            guard let name = HTTPField.Name(name), Self.forwardedFields.contains(name), HTTPField.isValidValue(value)
            else { return nil }
            headers[name] = value
        }
        let head = HTTPRequest(
            method: method, scheme: nil, authority: nil, path: self.target, headerFields: headers)
        return Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: self.body)))
    }

    var knownScopes: Set<ControlScope> { Set(self.scopes.compactMap { ControlScope(rawValue: $0) }) }
}

/// The answer of a node to a `NodeRequest`: one line of JSON, then the body.
package struct NodeReply: Sendable, Equatable {
    /// Header fields that clients get; others are not returned.
    private static let returnedFields: [HTTPField.Name] = [.contentType, .cacheControl, .location, .retryAfter]

    package var status: Int
    /// By name, in lower case.
    package var fields: [String: String] = [:]
    package var body: [UInt8]

    package init(status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }

    init(_ response: BufferedResponse) {
        self.init(status: response.status.code, body: response.body)
        for name in Self.returnedFields { self.fields[name.canonicalName] = response.headers[name] }
    }

    package var encoded: [UInt8] {
        var text = JSONText(capacity: 256 + self.body.count)
        text.beginObject()
        text.member("status", self.status)
        text.member("fields", self.fields)
        text.endObject()
        return text.bytes + [0x0A] + self.body
    }

    /// - Returns: `nil` for bytes that are no answer.
    package init?(_ bytes: [UInt8]) {
        guard let (head, body) = NodeRequest.parts(of: bytes) else { return nil }
        var reply = NodeReply(status: 0, body: body)
        let isDocument = JSONReader.readDocument(head) { (name, value) throws(JSONSyntaxError) in
            switch name {
            case "status": reply.status = try value.readInt()
            case "fields": reply.fields = try NodeRequest.fields(&value)
            default: try value.skipValue()
            }
        }
        guard isDocument, (200...599).contains(reply.status) else { return nil }
        self = reply
    }

    var isSuccess: Bool { (200...299).contains(self.status) }

    var response: Response {
        var headers = HTTPFields()
        for name in Self.returnedFields {
            guard let value = self.fields[name.canonicalName], HTTPField.isValidValue(value) else { continue }
            headers[name] = value
        }
        return Response(
            status: HTTPResponse.Status(code: self.status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: self.body)))
    }
}
