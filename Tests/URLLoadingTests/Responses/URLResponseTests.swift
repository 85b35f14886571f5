import Foundation
import Testing
import URLLoading

@Suite("Responses")
struct URLResponseTests {
    private static func response(
        _ url: String = "http://example.com/", mimeType: String? = nil, length: Int = -1, encoding: String? = nil
    ) throws -> URLResponse {
        let url = try #require(URL(string: url))
        return URLResponse(url: url, mimeType: mimeType, expectedContentLength: length, textEncodingName: encoding)
    }

    @Test func responseHasItsInitialValues() throws {
        let response = try Self.response("a/test/path", mimeType: "APP/x", length: 100, encoding: "utf8")
        #expect(response.url?.relativeString == "a/test/path" && response.mimeType == "APP/x")
        #expect(response.expectedContentLength == 100 && response.textEncodingName == "utf8")
        #expect(try Self.response().textEncodingName == nil)
    }

    @Test func responseCanBeMadeFromNothing() throws {
        for response in [URLResponse(), HTTPURLResponse()] {
            #expect(response.url == nil && response.mimeType == nil && response.textEncodingName == nil)
            #expect(response.expectedContentLength == -1 && response.suggestedFilename == "Unknown")
            let data = try NSKeyedArchiver.archivedData(withRootObject: response, requiringSecureCoding: true)
            let classes = [URLResponse.self, HTTPURLResponse.self]
            let back = try NSKeyedUnarchiver.unarchivedObject(ofClasses: classes, from: data) as? URLResponse
            #expect(back == response)
        }
        #expect(URLResponse() == URLResponse() && HTTPURLResponse().statusCode == 0)
        #expect(HTTPURLResponse().allHeaderFields.isEmpty)
    }

    @Test func httpResponseCanBeMadeLikeAnyOther() throws {
        let url = try #require(URL(string: "http://example.com/a.txt"))
        let response = HTTPURLResponse(
            url: url, mimeType: "text/plain", expectedContentLength: 7, textEncodingName: "utf-8")
        #expect(response.url == url && response.mimeType == "text/plain" && response.expectedContentLength == 7)
        #expect(response.textEncodingName == "utf-8" && response.suggestedFilename == "a.txt")
        #expect(response.statusCode == 0 && response.allHeaderFields.isEmpty)
    }

    @Test(arguments: [
        ("a/test/name.extension", "name.extension"), ("a/test/name.extension?foo=bar", "name.extension"),
        ("a://bar", "Unknown"), ("https://apple.com/", "Unknown"), ("http://a/b%20c.txt", "b c.txt"),
    ])
    func suggestedFilenameIsTheEndOfThePath(_ url: String, _ name: String) throws {
        #expect(try Self.response(url).suggestedFilename == name)
    }

    @Test func responsesWithEqualPropertiesAreEqual() throws {
        let plain = try Self.response()
        let twin = try Self.response()
        #expect(plain == twin && plain.hash == twin.hash)
        #expect(plain.isEqual(plain.copy()) && !plain.isEqual(NSObject()))
        let variants = try [
            plain, Self.response("http://example.com/second"), Self.response(mimeType: "a/b"),
            Self.response(length: 2), Self.response(encoding: "e"),
        ]
        #expect(Set(variants).count == variants.count)
        let http = HTTPURLResponse(url: try #require(plain.url), statusCode: 0, httpVersion: nil, headerFields: nil)
        #expect(!plain.isEqual(http) && http?.isEqual(plain) == false)
    }

    @Test(arguments: [("Unknown", "Unknown"), ("", "Unknown"), ("invalid/valid", "valid"), ("..", "Unknown")])
    func archivedFilenameIsMadeFitForADisk(_ written: String, _ name: String) throws {
        let response = try Self.response("https://apple.com", mimeType: "txt", length: 3)
        let archiver = NSKeyedArchiver(requiringSecureCoding: true)
        archiver.outputFormat = .xml
        archiver.encode(response, forKey: NSKeyedArchiveRootObjectKey)
        let text = String(decoding: archiver.encodedData, as: UTF8.self)
        let data = Data(text.replacingOccurrences(of: "Unknown", with: written).utf8)
        let back = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: URLResponse.self, from: data))
        #expect(back.suggestedFilename == name && back.url == response.url && back.mimeType == "txt")
        #expect(back.expectedContentLength == 3 && back.textEncodingName == nil)
    }
}
