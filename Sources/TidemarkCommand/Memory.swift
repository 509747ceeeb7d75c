#if Server
    #if canImport(Glibc)
        import Glibc
    #endif

    /// How the system's allocator keeps what was freed. By default glibc raises the size from which a block is mapped
    /// by itself with each large one that is freed, up to 32 MiB: then pages of 4 MiB lie in its arenas, and memory is
    /// not returned to the system although nobody uses it.
    enum Memory {
        /// Blocks from this size on are mappings of their own, and are returned when they are freed.
        private static let mapped: Int32 = 1 << 20
        /// The bytes that stay at the end of an arena.
        private static let kept: Int32 = 8 << 20

        static func returnFreePages() {
            #if canImport(Glibc)
                // Looked up by its name: Swift's Glibc does not have it, and other systems' libraries need not.
                guard let symbol = dlsym(nil, "mallopt") else { return }
                let mallopt = unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)
                _ = mallopt(Setting.mapThreshold, mapped)
                _ = mallopt(Setting.trimThreshold, kept)
            #endif
        }

        /// Numbers of glibc's `mallopt(3)`, which has them as macros.
        private enum Setting {
            static let trimThreshold: Int32 = -1
            static let mapThreshold: Int32 = -3
        }
    }
#endif
