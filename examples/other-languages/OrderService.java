package shop;

import org.apache.ibatis.annotations.Mapper;
import org.apache.ibatis.annotations.Param;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

@Mapper
interface OrderMapper {
    void insertOrder(@Param("id") String id, @Param("amount") int amount);

    void insertMessage(@Param("type") String type, @Param("key") String key,
                       @Param("topic") String topic, @Param("body") String json);
}

@Service
public class OrderService {
    private final OrderMapper mapper;

    public OrderService(OrderMapper mapper) {
        this.mapper = mapper;
    }

    /** The order and the message about it: both, or neither. */
    @Transactional(rollbackFor = Exception.class) // without rollbackFor a checked exception commits
    public void place(String id, int amount) {
        mapper.insertOrder(id, amount);
        mapper.insertMessage("order.created", id, "orders", "{\"id\":\"" + id + "\",\"amount\":" + amount + "}");
    }
}
