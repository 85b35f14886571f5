import Foundation
import HTTPSemantics
import Testing
import URLLoading

@Suite("Resume data of uploads")
struct UploadResumeDataTests {
    private static let file = FileIdentity(device: 1 << 40, inode: 7, size: 6_000_000_000, modified: -5)

    private func sample(
        _ body: UploadResumeData.Body = .file(URL(fileURLWithPath: "/tmp/a b"), file), length: Int64? = 6_000_000_000
    ) throws -> UploadResumeData {
        var original = URLRequest(url: try #require(URL(string: "https://example.com/up?x=1")))
        original.httpMethod = "POST"
        original.setValue("yes", forHTTPHeaderField: "X-Own")
        original.timeoutInterval = 7.5
        var current = URLRequest(url: try #require(URL(string: "http://[::1]:8080/b")))
        current.httpMethod = "PUT"
        return UploadResumeData(
            originalRequest: original, currentRequest: current,
            resource: try #require(URL(string: "https://example.com/parts/1")), version: .six, acknowledged: 5,
            length: length, partSize: 1000, expiry: HTTPDate(seconds: 5_000_000_000), body: body)
    }

    private func changed(_ change: (inout [String: Any]) -> Void) throws -> Data {
        let data = try #require(try self.sample().encoded())
        var list = try #require(
            try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
        change(&list)
        return try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
    }

    @Test func uploadResumeDataReadBackEqual() throws {
        let bodies: [(UploadResumeData.Body, Int64?)] = [
            (.file(URL(fileURLWithPath: "/tmp/a b"), Self.file), 6_000_000_000), (.data(Data([1, 2, 3, 4, 5])), 5),
            (.stream, nil),
        ]
        for (body, length) in bodies {
            let sample = try self.sample(body, length: length)
            let data = try #require(sample.encoded())
            let found = try #require(UploadResumeData(data))
            #expect(found.originalRequest == sample.originalRequest && found.currentRequest == sample.currentRequest)
            #expect(found.originalRequest.chosenTimeout == 7.5 && found.resource == sample.resource)
            #expect(found.version == .six && found.acknowledged == 5 && found.length == length)
            #expect(found.partSize == 1000 && found.body == body && found.expiry?.seconds == 5_000_000_000)
        }
    }

    @Test func foreignUploadDataAreRefused() throws {
        let good = try #require(try self.sample().encoded())
        #expect(UploadResumeData(good) != nil && ResumeData(good) == nil)
        #expect(UploadResumeData(Data()) == nil && UploadResumeData(Data("bplist00".utf8)) == nil)
        #expect(UploadResumeData(Data(repeating: UInt8(ascii: "("), count: 500_000)) == nil)
        let text = try PropertyListSerialization.data(fromPropertyList: ["version": 1], format: .xml, options: 0)
        #expect(UploadResumeData(text) == nil)
    }

    @Test func eachInvalidMemberOfUploadDataIsRefused() throws {
        let changes: [(inout [String: Any]) -> Void] = [
            { $0["version"] = 2 }, { $0["kind"] = "download" }, { $0["kind"] = nil }, { $0["resource"] = "file:///a" },
            { $0["resource"] = "/up" }, { $0["resource"] = 7 }, { $0["protocolVersion"] = 2 },
            { $0["protocolVersion"] = 10 }, { $0["acknowledged"] = -1 }, { $0["acknowledged"] = 6_000_000_001 },
            { $0["acknowledged"] = 1e300 }, { $0["length"] = 5 }, { $0["length"] = nil }, { $0["length"] = -1 },
            { $0["partSize"] = 0 }, { $0["partSize"] = -5 }, { $0["file"] = nil }, { $0["file"] = "x" },
            { $0["data"] = Data(count: 5) }, { $0["stream"] = true },
            { $0["originalRequest"] = nil }, { $0["currentRequest"] = ["url": "http://a/"] },
        ]
        for (index, change) in changes.enumerated() {
            #expect(UploadResumeData(try self.changed(change)) == nil, "change \(index)")
        }
        let files: [[String: Any]] = [
            ["path": "relative"], ["path": ""], ["path": "/a\0b"], ["path": "/" + String(repeating: "a", count: 5000)],
            ["size": -1], ["size": 7], ["inode": "x"], ["modified": 1e300],
        ]
        for wrong in files {
            let data = try self.changed { list in
                list["file"] = (list["file"] as? [String: Any] ?? [:]).merging(wrong) { $1 }
            }
            #expect(UploadResumeData(data) == nil, "\(wrong)")
        }
        for wrong in [["method": "GET"], ["method": "DELETE"], ["url": "file:///a"]] {
            let data = try self.changed { list in
                list["originalRequest"] = (list["originalRequest"] as? [String: Any] ?? [:]).merging(wrong) { $1 }
            }
            #expect(UploadResumeData(data) == nil, "\(wrong)")
        }
    }

    @Test func changedByteOfUploadDataIsReadOrRefused() throws {
        let good = try #require(try self.sample().encoded())
        for index in good.indices {
            for flip: UInt8 in [0x01, 0x80, 0xFF] {
                var bytes = good
                bytes[index] ^= flip
                if let found = UploadResumeData(bytes) { #expect(found.acknowledged >= 0) }
            }
            _ = UploadResumeData(good.prefix(index))
        }
    }

    /// The task itself, with data that read well and name nothing that exists.
    @Test func dataThatNameNothingFailTheTask() async throws {
        let closed = try ClosedPort()
        var sample = try self.sample()
        sample.resource = closed.url("/part")
        sample.acknowledged = .max
        #expect(UploadResumeData(try #require(sample.encoded())) == nil)
        sample.acknowledged = 0
        let data = try #require(sample.encoded())
        let session = URLSession.test { $0.timeoutIntervalForResource = 0.3 }
        await #expect(throws: URLError.self) { try await session.upload(resumeFrom: data) }
        session.invalidateAndCancel()
    }
}
