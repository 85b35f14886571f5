import Foundation
#if canImport(URLLoading)
    import URLLoading
#endif

/// Nothing runs here: the program exists to compile the code of the articles.
@main
enum Program {
    static func main() {}
}
