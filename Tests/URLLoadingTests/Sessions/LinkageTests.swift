import Foundation
import Testing
import URLLoading

@Suite("What the library stands on")
struct LinkageTests {
    @Test func libraryLinksNeitherFoundationNetworkingNorLibcurl() throws {
        // Of a file of the kernel's nobody knows the length before its end.
        let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps"))
        let maps = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        #expect(maps.contains("libFoundation"), "the list of libraries was not read")
        #expect(!maps.contains("FoundationNetworking") && !maps.contains("libcurl"))
    }
}
