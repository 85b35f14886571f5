import Dispatch

/// Where files of caches are read and written: off the loops, and one after the other.
enum DiskQueue {
    static let shared = DispatchQueue(label: "URLLoading.disk")
}
