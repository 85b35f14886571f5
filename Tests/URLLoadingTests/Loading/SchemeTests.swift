import Foundation
import Testing
import URLLoading

@Suite("Schemes other than HTTP", .loading, .timeLimit(.minutes(20)))
struct SchemeTests {
    struct Inline: CustomTestStringConvertible, Sendable {
        let text: String
        let bytes: [UInt8]
        let type: String
        let encoding: String?
        var testDescription: String { self.text }

        init(_ text: String, _ content: String, _ type: String = "text/plain", _ encoding: String? = nil) {
            self.text = text
            self.bytes = Array(content.utf8)
            self.type = type
            self.encoding = encoding
        }

        static let family = "👨‍👩‍👧"
        static let all = [
            Inline("data:,123", "123"), Inline("data:;base64,SGVsbG8=", "Hello"),
            Inline("data:;charset=utf-8,%F0%9F%91%A8", "👨", "text/plain", "utf-8"),
            Inline("data:application/json;charset=iso-8859-1;key=value,,123", ",123", "application/json", "iso-8859-1"),
            Inline("data:;charset=utf-8;charset=utf-16;image/png,abc", "abc", "text/plain", "utf-8"),
            Inline("data:a/b;key=value;charset=macroman,blahblah", "blahblah", "a/b", "macroman"),
        ]
    }

    @Test(arguments: Inline.all)
    func dataURLHasItsContent(_ inline: Inline) async throws {
        let url = try #require(URL(string: inline.text))
        let recorder = DataRecorder()
        let notes = try await recorder.run(url)
        #expect(notes.error == nil && notes.data == Data(inline.bytes))
        #expect(
            recorder.eventsOfTheTask.filter { $0 != "metrics" && $0 != "created" } == ["response", "data", "complete"])
        let response = try #require(notes.response)
        #expect(response.url == url && response.url?.absoluteString == inline.text)
        #expect(response.mimeType == inline.type && response.textEncodingName == inline.encoding)
        #expect(response.expectedContentLength == Int64(inline.bytes.count))
    }

    @Test(arguments: [
        "data://blah", "data:%2c123", "data:application_json;charset=iso-8859-%31;key=value,123,",
        "data:appli/cation/json%3bcharset=ISO-8859-1;key=value,,123,",
    ])
    func urlWithoutDataIsAFailure(_ text: String) async throws {
        let recorder = DataRecorder()
        let notes = try await recorder.run(try #require(URL(string: text)))
        #expect(notes.error != nil && notes.response == nil)
        #expect(recorder.eventsOfTheTask.filter { $0 != "metrics" && $0 != "created" } == ["complete"])
    }

    /// RFC 8089 §2.
    @Test(
        arguments: [("", nil), ("localhost", nil), ("LocalHost", nil), ("other.test", .fileDoesNotExist)]
            as [(String, URLError.Code?)])
    func fileOfAnotherHostIsNotRead(_ host: String, _ code: URLError.Code?) async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("a.txt")
        try Data("words".utf8).write(to: file)
        let url = try #require(URL(string: "file://\(host)\(file.path)"))
        let session = URLSession.test()
        let loaded = try await session.load(url)
        #expect(loaded.code == code && loaded.text == (code == nil ? "words" : nil))
        session.invalidateAndCancel()
    }

    @Test func fileIsRead() async throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("page.html")
        let content = Data(String(repeating: "<p>words</p>", count: 20_000).utf8)
        try content.write(to: file)
        let session = URLSession.test()
        let loaded = try await session.load(file)
        #expect(loaded.data == content && loaded.error == nil && loaded.response?.url == file)
        #expect(loaded.response?.mimeType == "text/html" && loaded.response?.expectedContentLength == 240_000)
        let (copy, _) = try await session.download(from: file)
        #expect(try Data(contentsOf: copy) == content && copy != file)
        try FileManager.default.removeItem(at: copy)
        #expect(try await session.load(folder.url.appendingPathComponent("none")).code == .fileDoesNotExist)
        let folderCode = try await session.load(folder.url).code
        #expect([.fileIsDirectory, .noPermissionsToReadFile, .fileDoesNotExist].contains(folderCode))
        var lines = 0
        for try await _ in file.lines { lines += 1 }
        #expect(lines == 1)
        session.invalidateAndCancel()
    }
}
