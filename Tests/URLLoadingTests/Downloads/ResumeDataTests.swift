import Foundation
import HTTPSemantics
import Testing
import URLLoading

@Suite("Resume data")
struct ResumeDataTests {
    private func sample(_ validator: ResumeValidator = .entityTag("\"abc\"")) throws -> ResumeData {
        let url = try #require(URL(string: "https://example.com/a%20file?x=1"))
        var original = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: 7.5)
        original.setValue("yes", forHTTPHeaderField: "X-Own")
        original.httpShouldHandleCookies = false
        original.allowsExpensiveNetworkAccess = false
        original.requiresDNSSECValidation = true
        original.mainDocumentURL = URL(string: "https://example.com/")
        let current = URLRequest(url: try #require(URL(string: "http://[::1]:8080/b")))
        return ResumeData(
            originalRequest: original, currentRequest: current, validator: validator, bytesReceived: 5_000_000_000,
            total: 6_000_000_000, file: try #require(DownloadFileName("URLLoadingDownload_aB3dEf012345.tmp")))
    }

    /// Good data whose property list was changed by `change`.
    private func changed(_ change: (inout [String: Any]) -> Void) throws -> Data {
        let data = try #require(try self.sample().encoded())
        var list = try #require(
            try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
        change(&list)
        return try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
    }

    @Test(arguments: [ResumeValidator.entityTag("\"x\""), .lastModified("Tue, 15 Nov 1994 12:45:26 GMT")])
    func resumeDataReadsBackEqual(_ validator: ResumeValidator) throws {
        let sample = try self.sample(validator)
        let data = try #require(sample.encoded())
        let found = try #require(ResumeData(data))
        #expect(found.originalRequest == sample.originalRequest && found.currentRequest == sample.currentRequest)
        #expect(found.originalRequest.chosenTimeout == 7.5 && found.currentRequest.chosenTimeout == nil)
        #expect(found.validator == validator && found.file == sample.file)
        #expect(found.bytesReceived == 5_000_000_000 && found.total == 6_000_000_000)
    }

    @Test func olderResumeDataHasNoRestrictions() throws {
        let data = try self.changed { list in
            var request = list["originalRequest"] as? [String: Any] ?? [:]
            request["restrictions"] = nil
            list["originalRequest"] = request
        }
        let found = try #require(ResumeData(data)).originalRequest
        #expect(found.allowsExpensiveNetworkAccess && !found.requiresDNSSECValidation && found.chosenTimeout == 7.5)
    }

    @Test func resumeDataIsNotMadeForOtherSchemes() throws {
        var sample = try self.sample()
        sample.currentRequest.url = URL(string: "file:///etc/passwd")
        #expect(sample.encoded() == nil)
        sample.currentRequest.url = nil
        #expect(sample.encoded() == nil)
    }

    @Test func foreignDataIsRefused() throws {
        let good = try #require(try self.sample().encoded())
        #expect(ResumeData(good) != nil)
        #expect(ResumeData(Data()) == nil)
        #expect(ResumeData(Data("bplist00".utf8)) == nil)
        #expect(ResumeData(Data(repeating: UInt8(ascii: "("), count: 500_000)) == nil)
        #expect(ResumeData(good + Data(count: ResumeData.limit)) == nil)
        let text = try PropertyListSerialization.data(fromPropertyList: ["version": 1], format: .xml, options: 0)
        #expect(ResumeData(text) == nil)
    }

    @Test func eachInvalidMemberIsRefused() throws {
        let changes: [(inout [String: Any]) -> Void] = [
            { $0["version"] = 2 }, { $0["version"] = "1" }, { $0["bytesReceived"] = 0 }, { $0["bytesReceived"] = -1 },
            { $0["bytesReceived"] = 1e300 }, { $0["total"] = 4 }, { $0["file"] = "../../etc/passwd" },
            { $0["file"] = "/etc/passwd" }, { $0["file"] = Data() }, { $0["entityTag"] = "a\r\nX: y" },
            { $0["entityTag"] = nil }, { $0["entityTag"] = "" }, { $0["originalRequest"] = nil },
            { $0["originalRequest"] = "x" }, { $0["currentRequest"] = [String: Any]() },
        ]
        for (index, change) in changes.enumerated() {
            #expect(ResumeData(try self.changed(change)) == nil, "change \(index)")
        }
        let requests: [[String: Any]] = [
            ["url": "file:///etc/passwd"], ["url": "http:"], ["url": ""], ["url": 7], ["method": "POST"],
            ["fields": ["a"]], ["fields": ["a": 1]], ["fields": ["a b": "c"]],
            ["fields": ["a": "b", "A": "b"]], ["timeout": "x"], ["cachePolicy": -1],
        ]
        for wrong in requests {
            let data = try self.changed { list in
                let request = list["originalRequest"] as? [String: Any] ?? [:]
                list["originalRequest"] = request.merging(wrong) { $1 }
            }
            #expect(ResumeData(data) == nil, "\(wrong)")
        }
    }

    @Test func endlessNestingIsRefused() throws {
        func bigEndian(_ number: Int, _ count: Int) -> [UInt8] {
            (1...count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - $0))) }
        }
        var bytes = Array("bplist00".utf8)
        let count = 100_000
        // Each array contains the next one; the last is empty.
        for index in 1...count { bytes += [0xA1] + bigEndian(index, 3) }
        bytes.append(0xA0)
        let table = bytes.count
        for index in 0...count { bytes += bigEndian(8 + 4 * index, 3) }
        bytes += [0, 0, 0, 0, 0, 0, 3, 3] + bigEndian(count + 1, 8) + bigEndian(0, 8) + bigEndian(table, 8)
        #expect(ResumeData(Data(bytes)) == nil)
    }

    @Test func changedByteIsReadOrRefused() throws {
        let good = try #require(try self.sample().encoded())
        for index in good.indices {
            for flip: UInt8 in [0x01, 0x80, 0xFF] {
                var bytes = good
                bytes[index] ^= flip
                if let found = ResumeData(bytes) { #expect(found.bytesReceived > 0) }
            }
            _ = ResumeData(good.prefix(index))
        }
    }
}
