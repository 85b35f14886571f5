import Foundation
import Testing
import URLLoading

@Suite("Responses over HTTP")
struct HTTPURLResponseTests {
    private final class Always404: HTTPURLResponse, @unchecked Sendable {
        override var statusCode: Int { 404 }
        override var url: URL? { nil }
    }

    private static func response(_ fields: [String: String]?, status: Int = 200) throws -> HTTPURLResponse {
        let url = try #require(URL(string: "https://www.swift.org"))
        return try #require(
            HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
    }

    @Test func responseHasStatusAndFields() throws {
        let response = try Self.response(["A": "1", "B": "2"], status: 302)
        #expect(response.statusCode == 302 && response.allHeaderFields.count == 2)
        #expect(response.allHeaderFields["A"] as? String == "1")
        #expect(try Self.response(nil).allHeaderFields.isEmpty)
    }

    @Test(
        arguments: [
            (["Content-Length": "997"], 997), (["Content-Length": "997", "Transfer-Encoding": "chunked"], 997),
            (["Content-Length": "997", "Content-Encoding": "deflate"], 997), (["Server": "Apache"], -1),
            (["content-length": "5"], 5), (["Content-Length": "-5"], -1), (["Content-Length": "abc"], -1),
            (["Content-Length": "5, 5"], 5), (["Content-Length": "5, 6"], -1), (["Content-Length": ""], -1),
            (["Content-Length": "99999999999999999999999"], -1), (["Content-Length": "+5"], -1),
        ] as [([String: String], Int64)])
    func expectedLengthComesFromTheField(_ fields: [String: String], _ length: Int64) throws {
        #expect(try Self.response(fields).expectedContentLength == length)
    }

    @Test(
        arguments: [
            ([:], "Unknown"), (["Content-Disposition": "inline"], "Unknown"),
            (["Content-Disposition": "attachment; filename=\"fname.ext\""], "fname.ext"),
            (["content-disposition": "attachment; filename=\"/a/b/name\""], "_a_b_name"),
            (["Content-Disposition": "attachment; filename=\"a/../b/name\""], "a_.._b_name"),
        ] as [([String: String], String)])
    func suggestedFilenameIsThatOfTheServer(_ fields: [String: String], _ name: String) throws {
        #expect(try Self.response(fields).suggestedFilename == name)
    }

    @Test func mediaTypeIsInLowerCase() throws {
        let response = try Self.response(["Content-Type": "text/HTML; charset=ISO-8859-4"])
        #expect(response.mimeType == "text/html" && response.textEncodingName == "iso-8859-4")
        let bare = try Self.response(["Content-Type": "text/html"])
        #expect(bare.mimeType == "text/html" && bare.textEncodingName == nil)
        #expect(try Self.response(["Server": "x"]).mimeType == nil)
    }

    @Test func wellKnownFieldNamesAreCapitalized() throws {
        let response = try Self.response([
            "location": "/new", "conTent-lenGTH": "123", "CONTENT-type": "text/plAIn; charset=ISO-8891-1",
            "x-extra-HEADER": "my Header", "X-UPPERCASE": "UPPERCASE", "www-authenticate": "Basic", "etag": "\"1\"",
        ])
        let names = Set(response.allHeaderFields.keys.compactMap { $0 as? String })
        #expect(
            names == [
                "Location", "Content-Length", "Content-Type", "x-extra-HEADER", "X-UPPERCASE", "WWW-Authenticate",
                "ETag",
            ])
        #expect(response.value(forHTTPHeaderField: "LOcation") == "/new")
        #expect(response.value(forHTTPHeaderField: "X-eXtra-Header") == "my Header")
        #expect(response.value(forHTTPHeaderField: "None") == nil)
    }

    @Test func repeatedFieldsAreJoined() throws {
        let url = try #require(URL(string: "http://a/"))
        let lines = [("vary", "a"), ("X-One", "1"), ("Vary", "b"), ("x-one", "2"), ("content-length", "7")]
        let response = HTTPURLResponse(
            url: url, statusCode: 200, httpVersion: "HTTP/1.1", lines: lines.map { (name: $0.0, value: $0.1) },
            contentIsEncoded: true)
        #expect(response.value(forHTTPHeaderField: "vary") == "a, b")
        #expect(response.allHeaderFields["X-One"] as? String == "1, 2")
        #expect(response.expectedContentLength == -1)
    }

    @Test(arguments: [
        (100, "Continue"), (150, "Informational"), (200, "OK"), (299, "Success"), (304, "Not Modified"),
        (399, "Redirection"), (404, "Not Found"), (418, "Client Error"), (500, "Internal Server Error"),
        (599, "Server Error"), (0, "Server Error"), (Int.max, "Server Error"),
    ])
    func statusCodesHaveLocalizedNames(_ status: Int, _ name: String) {
        #expect(HTTPURLResponse.localizedString(forStatusCode: status) == name)
    }

    @Test func httpResponseIsDecodedFromAnArchive() throws {
        let response = try Self.response(
            ["Content-Type": "text/HTML; charset=ISO-8859-4", "Content-Disposition": "attachment; filename=f.ext"])
        let data = try NSKeyedArchiver.archivedData(withRootObject: response, requiringSecureCoding: true)
        let back = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: HTTPURLResponse.self, from: data))
        #expect(back == response && back.hash == response.hash && back.statusCode == 200)
        #expect(back.suggestedFilename == "f.ext" && back.textEncodingName == "iso-8859-4")
    }

    @Test func responsesDifferByStatusAndFields() throws {
        let variants = try [
            Self.response(nil), Self.response(nil, status: 201), Self.response(["A": "1"]), Self.response(["A": "2"]),
        ]
        #expect(Set(variants).count == 4)
    }

    @Test func responseCanBeOverridden() throws {
        let url = try #require(URL(string: "http://a/"))
        let response: HTTPURLResponse? = Always404(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
        #expect(response?.statusCode == 404 && response?.url == nil)
    }
}
